import { randomUUID } from 'node:crypto';

// Files run side by side on one server: what pg connects from this one, and from its workers, can be told apart.
process.env['PGAPPNAME'] = `file ${randomUUID()}`;
