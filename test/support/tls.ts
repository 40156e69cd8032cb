import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { guardedDir } from '../../src/addons/testing/servers/guard.js';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** A certificate authority of our own, made by openssl, that vanishes with this process. */
export class Authority {
  readonly #dir = guardedDir('tls');
  readonly ca: string;

  constructor() {
    const subject = ['-subj', `/CN=authority ${randomUUID()}`];
    openssl(this.#dir.path, 'req', '-x509', '-newkey', ...EC, '-keyout', 'ca.key', '-out', 'ca.crt', ...subject);
    this.ca = this.path('ca.crt');
  }

  path(name: string): string {
    return join(this.#dir.path, name);
  }

  /** One for 127.0.0.1 and localhost, as server and as client. Returns the paths of its files. */
  issue(name: string): Certificate {
    const request = ['-newkey', ...EC, '-keyout', `${name}.key`, '-out', `${name}.crt`, '-subj', `/CN=${name}`];
    const names = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost', '-addext', 'basicConstraints=CA:FALSE'];
    openssl(this.#dir.path, 'req', '-x509', ...request, ...names, '-CA', 'ca.crt', '-CAkey', 'ca.key');
    return { key: this.path(`${name}.key`), cert: this.path(`${name}.crt`) };
  }

  remove(): void {
    this.#dir.remove();
  }
}

const EC = ['ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];

function openssl(cwd: string, ...args: string[]): void {
  execFileSync('openssl', args, { cwd, stdio: 'pipe' });
}
