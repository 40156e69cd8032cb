import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Debian keeps servers where a user's `PATH` does not always lead. */
const MORE = '/usr/sbin';

export function onPath(name: string): string | undefined {
  return [...(process.env['PATH'] ?? '').split(delimiter), MORE]
    .map((dir) => join(dir, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}
