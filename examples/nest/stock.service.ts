import { ConflictException, Inject, Injectable, NotFoundException } from '@nestjs/common';
import { currentTx, WithLock } from '../../src/addons/nest/index.js';
import { PrismaService } from './prisma.js';

@Injectable()
export class StockService {
  // With `emitDecoratorMetadata` the type is enough. tsx, which runs this example, does not emit it.
  constructor(@Inject(PrismaService) private readonly prisma: PrismaService) {}

  async find(id: number) {
    const stock = await this.prisma.stock.findUnique({ where: { id } });
    if (stock === null) throw new NotFoundException();
    return stock;
  }

  /** Under the lock of the product. An exception rolls everything back. */
  @WithLock('stock:{0}')
  async sell(id: number, quantity: number, buyer: string) {
    const tx = currentTx(this.prisma);
    const stock = await tx.stock.findUnique({ where: { id } });
    if (stock === null) throw new NotFoundException();
    if (stock.quantity < quantity) throw new ConflictException('There is not enough left.');
    await tx.order.create({ data: { stockId: id, buyer, quantity } });
    return await tx.stock.update({ where: { id }, data: { quantity: stock.quantity - quantity } });
  }
}
