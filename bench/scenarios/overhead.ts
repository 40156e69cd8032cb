import Table from 'cli-table3';
import { interleave, type Timing } from '../interleave.js';
import type { BenchShop } from '../shop.js';

/** What `$withLock` adds to the same transaction, a read and an update, where nobody contends. */
export async function overhead({ prisma }: BenchShop): Promise<void> {
  const { id } = await prisma.stock.create({ data: { product: 'bench', quantity: 0 } });
  const work = async (tx: Pick<typeof prisma, 'stock'>) => {
    const { quantity } = await tx.stock.findUniqueOrThrow({ where: { id } });
    await tx.stock.update({ where: { id }, data: { quantity: quantity + 1 } });
  };
  const timings = await interleave({
    'prisma.$transaction': () => prisma.$transaction(work),
    'prisma.$withLock': () => prisma.$withLock('bench', work),
  });
  const bare = timings['prisma.$transaction'] as Timing;
  const table = new Table({ head: ['read + update', 'median ms', 'p99 ms', 'ratio of medians'], style: { head: [] } });
  for (const [name, timing] of Object.entries(timings)) {
    const ratio = timing.median / bare.median;
    table.push([name, timing.median.toFixed(3), timing.p99.toFixed(3), ratio.toFixed(2)]);
  }
  console.log(table.toString());
}
