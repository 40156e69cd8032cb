import { Body, Controller, Get, HttpCode, Inject, Param, ParseIntPipe, Post } from '@nestjs/common';
import { StockService } from './stock.service.js';

@Controller('stock')
export class StockController {
  constructor(@Inject(StockService) private readonly stock: StockService) {}

  @Get(':id')
  find(@Param('id', ParseIntPipe) id: number) {
    return this.stock.find(id);
  }

  @Post(':id/sell')
  @HttpCode(200)
  sell(@Param('id', ParseIntPipe) id: number, @Body('quantity', ParseIntPipe) quantity: number) {
    return this.stock.sell(id, quantity, process.env['NAME'] ?? 'shop');
  }
}
