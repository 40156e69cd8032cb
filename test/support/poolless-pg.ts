import { PrismaPg } from '@prisma/adapter-pg';

/** An adapter that does not tell its pool of pg, as one without a pool: it sends each statement by itself. */
export class PoollessPg extends PrismaPg {
  override async connect() {
    return Object.assign(await super.connect(), { underlyingDriver: undefined }) as never;
  }
}
