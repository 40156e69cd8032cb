import { readFileSync } from 'node:fs';
import ts from 'typescript';

/** Both kinds of decorators that TypeScript compiles. */
export const KINDS = {
  legacy: { experimentalDecorators: true, emitDecoratorMetadata: true },
  standard: { experimentalDecorators: false },
} as const;
export type Kind = keyof typeof KINDS;

/** What a file of `fixtures/` exports, compiled with one kind of decorators. `modules`: what it may import, by name. */
export function compiled<Exports>(file: string, kind: Kind, modules: Record<string, object>): Exports {
  const compilerOptions = { ...KINDS[kind], module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 };
  const text = readFileSync(new URL(`fixtures/${file}`, import.meta.url), 'utf8');
  const { outputText } = ts.transpileModule(text, { compilerOptions });
  const exports = {};
  const require = (name: string) => {
    const found = modules[name];
    if (found === undefined) throw new Error(`${file} imports ${name}, which it was not given`);
    return found;
  };
  new Function('exports', 'require', outputText)(exports, require);
  return exports as Exports;
}
