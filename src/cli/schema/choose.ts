import { Problem } from '../problem.js';
import type { SchemaModel } from './models.js';

/** The models with these names, each once, in the given order. @throws Problem */
export function choose(models: readonly SchemaModel[], names: readonly string[]): SchemaModel[] {
  return [...new Set(names)].map((name) => {
    const model = models.find((model) => model.name === name);
    if (model === undefined) throw new Problem(`There is no model ${name} in the schema.${alike(models, name)}`);
    if (model.kind === 'view') throw new Problem(`${name} is a view: nothing is written to it, so it needs no fence.`);
    return model;
  });
}

function alike(models: readonly SchemaModel[], name: string): string {
  const plain = (text: string) => text.toLowerCase().replaceAll('_', '').replace(/s$/, '');
  const meant = models.find((model) => plain(model.name) === plain(name) || plain(model.table) === plain(name));
  if (meant !== undefined) return ` Did you mean ${meant.name}?`;
  return models.length === 0 ? ' It has none.' : ` It has ${models.map((model) => model.name).join(', ')}.`;
}

/** The client option that omits these fields from rows, because JSON.stringify fails for a bigint. */
export function omitLine(models: readonly SchemaModel[], field: string): string {
  const client = ({ name }: SchemaModel) => name.charAt(0).toLowerCase() + name.slice(1);
  return `omit: { ${models.map((model) => `${client(model)}: { ${field}: true }`).join(', ')} }`;
}
