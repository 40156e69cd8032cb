import type { Shop } from '../support/shop.js';

/**
 * In a database that no other test uses: each admission waits while it is held, however short its `lock_timeout` is.
 */
export async function slowAdmission(shop: Shop) {
  await shop.admin.query(`
    CREATE TABLE public.admissions (held boolean NOT NULL);
    INSERT INTO public.admissions VALUES (false);
    CREATE FUNCTION public.hold_admission() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
      BEGIN
        WHILE (SELECT held FROM public.admissions) LOOP PERFORM pg_sleep(0.01); END LOOP;
        RETURN NEW;
      END $$;
    CREATE TRIGGER held BEFORE UPDATE ON fenced_lock.admission
      FOR EACH ROW EXECUTE FUNCTION public.hold_admission()`);
  const set = (held: boolean) => shop.admin.query('UPDATE public.admissions SET held = $1', [held]);
  return { hold: () => set(true), goOn: () => set(false) };
}
