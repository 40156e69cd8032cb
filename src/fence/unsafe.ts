import { InvalidOptionError } from '../base/errors.js';
import type { Relation } from './database.js';
import { type Args, type Fence, isOurs } from './fence.js';

/** The row that nested writes hang from, if it is there already. */
export interface Parent {
  /** A condition that finds it. */
  readonly where: Args;
  /** Whether it has been claimed, so that nobody else moves it meanwhile. */
  readonly claimed: boolean;
}

/** What is asked for through one relation of one row. */
export interface Step {
  readonly holder: string;
  readonly field: string;
  readonly relation: Relation;
  /** The nested operations. */
  readonly names: readonly string[];
  readonly parent: Parent | undefined;
  readonly fence: Fence;
}

const JOIN: ReadonlySet<string> = new Set(['connect', 'connectOrCreate', 'set']);
const MEET: ReadonlySet<string> = new Set(['update', 'updateMany', 'upsert', 'delete', 'deleteMany', 'disconnect']);
const GUARD = 'or install the guard with `add-fence`.';

/**
 * Refuses the nested writes that no claim makes safe: those for which Prisma itself finds rows to write, between
 * the claim and its own statements, by what another transaction may have changed by then.
 *
 * @throws InvalidOptionError that says what to write instead.
 */
export function refuseUnsafe(step: Step): void {
  const { holder, field, relation, names, parent, fence } = step;
  const { model, back, shape } = relation;
  const refuse = (name: string, problem: string): never => {
    throw new InvalidOptionError(`${holder}.${field}.${name}`, `cannot be made safe without the guard: ${problem}`);
  };
  if (shape === undefined) {
    throw refuse(
      '*',
      `this client does not tell how the two are related. Write ${model} in its own operation, ${GUARD}`,
    );
  }
  const first = names.find((name) => JOIN.has(name));
  if (first !== undefined && names.some((name) => MEET.has(name) && !(shape.list && name === 'disconnect'))) {
    refuse(first, `it changes what the other writes beside it meet. Use an operation for each, ${GUARD}`);
  }
  if (!shape.list && names.length > 1) {
    refuse(names[1] ?? '', `it stands beside another write of the same row. Use an operation for each, ${GUARD}`);
  }
  const oneToOne = !shape.list && !shape.backList;
  const makes = names.find((name) => name === 'create' || name === 'upsert' || JOIN.has(name));
  if (isOurs(model, fence) && makes !== undefined && oneToOne && !shape.holdsKey && parent !== undefined) {
    refuse(
      makes,
      `it disconnects whichever ${model} is there by then. Set the foreign key of ${model} itself, ${GUARD}`,
    );
  }
  if (isOurs(holder, fence) && first !== undefined && oneToOne && shape.holdsKey) {
    refuse(
      first,
      `it disconnects whichever ${holder} has that ${model} by then. Set the foreign key instead, ${GUARD}`,
    );
  }
  if (isOurs(model, fence) && names.includes('set') && !shape.backList && shape.list) {
    refuse('set', `it disconnects whichever ${model} are there by then. Use connect and disconnect, ${GUARD}`);
  }
  if (isOurs(model, fence) && names.includes('upsert') && shape.holdsKey && parent?.claimed === false) {
    refuse(
      'upsert',
      `its ${holder} is not fenced and may lead to another ${model} by then. Use ${model}.upsert with ` +
        `\`where: { ${back}: … }\`, ${GUARD}`,
    );
  }
}
