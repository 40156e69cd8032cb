-- The tables of schema.prisma, with the guard on each fenced one, as `fenced-lock add-fence` writes it.

CREATE TABLE "Seat" (
    show text NOT NULL, place text NOT NULL, buyer text, fence bigint NOT NULL DEFAULT 0, PRIMARY KEY (show, place)
);
CREATE TABLE "Coupon" (code text PRIMARY KEY, "left" integer NOT NULL, fence bigint NOT NULL DEFAULT 0);
CREATE TABLE "Redemption" (
    id serial PRIMARY KEY, code text NOT NULL REFERENCES "Coupon", "user" text NOT NULL, UNIQUE (code, "user")
);
CREATE TABLE "Payment" ("order" text PRIMARY KEY, paid integer NOT NULL DEFAULT 0);
CREATE TABLE "Event" (id text PRIMARY KEY, "order" text NOT NULL);
CREATE TABLE "Outbox" (
    id serial PRIMARY KEY, "order" text NOT NULL, paid integer NOT NULL, sent boolean NOT NULL DEFAULT false
);
CREATE TABLE "Report" (id serial PRIMARY KEY, orders integer NOT NULL, paid integer NOT NULL);

CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Seat"
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow');
CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON "Seat"
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('allow');
CREATE TRIGGER zzz_fenced_lock_guard BEFORE INSERT OR UPDATE OR DELETE ON "Coupon"
    FOR EACH ROW EXECUTE FUNCTION fenced_lock.guard('fence', 'allow');
CREATE TRIGGER zzz_fenced_lock_guard_truncate BEFORE TRUNCATE ON "Coupon"
    FOR EACH STATEMENT EXECUTE FUNCTION fenced_lock.guard_truncate('allow');
