import { randomUUID } from 'node:crypto';
import type { Shop } from '../support/shop.js';

/** A table whose writers wait in their COMMIT, until `goOn`; one with `refuse` set is then refused. */
export async function slowCommit(shop: Shop, refusal = '23514') {
  const name = `slow_${randomUUID().replaceAll('-', '')}`;
  const { rows } = await shop.admin.query(`SELECT floor(random() * 1e9)::int AS number`);
  const number = (rows[0] as { number: number }).number;
  await shop.admin.query(`
    CREATE TABLE ${name} (refuse boolean NOT NULL);
    GRANT INSERT ON ${name} TO PUBLIC;
    CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock_shared(${number});
        IF NEW.refuse THEN RAISE EXCEPTION 'refused' USING ERRCODE = '${refusal}'; END IF;
        RETURN NULL;
      END $$;
    CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON ${name}
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ${name}()`);
  shop.closeLater(() => shop.admin.query(`DROP TABLE ${name}; DROP FUNCTION ${name}()`));
  const keeper = await shop.admin.connect();
  await keeper.query('SELECT pg_advisory_lock($1)', [number]);
  let held = true;
  const goOn = async () => {
    if (!held) return;
    held = false;
    await keeper.query('SELECT pg_advisory_unlock($1)', [number]);
    keeper.release();
  };
  // A test that fails must not keep the others.
  shop.closeLater(goOn);
  return { insert: (refuse = false) => `INSERT INTO ${name} VALUES (${refuse})`, goOn };
}
