-- The tables of fence.prisma. A guard is put on them by the tests that want one.

CREATE SCHEMA people;
CREATE SCHEMA depot;

CREATE TABLE people."Team" (id serial PRIMARY KEY, name text NOT NULL UNIQUE);

CREATE TABLE depot."office furniture" (
    desk_id serial PRIMARY KEY, "desk name" text NOT NULL UNIQUE, desk_value integer NOT NULL,
    desk_fence bigint NOT NULL DEFAULT 0
);

CREATE TABLE people."Member" (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0,
    "teamId" integer REFERENCES people."Team" ON DELETE SET NULL ON UPDATE CASCADE,
    "deskId" integer UNIQUE REFERENCES depot."office furniture" ON DELETE SET NULL ON UPDATE CASCADE,
    "bossId" integer REFERENCES people."Member" ON DELETE SET NULL ON UPDATE CASCADE
);

CREATE TABLE people."Visit" (
    id serial PRIMARY KEY, purpose text NOT NULL,
    "hostId" integer REFERENCES people."Member" ON DELETE SET NULL ON UPDATE CASCADE,
    "deskId" integer UNIQUE REFERENCES depot."office furniture" ON DELETE SET NULL ON UPDATE CASCADE
);

CREATE TABLE people."Badge" (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0,
    "memberId" integer UNIQUE REFERENCES people."Member" ON DELETE SET NULL ON UPDATE CASCADE
);

CREATE TABLE people."Note" (
    "memberId" integer NOT NULL REFERENCES people."Member" ON DELETE CASCADE ON UPDATE CASCADE,
    number integer NOT NULL, name text NOT NULL, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0,
    PRIMARY KEY ("memberId", number), UNIQUE (name, number)
);

CREATE TABLE people."Tag" (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0
);

CREATE TABLE people."Mascot" (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0,
    "teamId" integer NOT NULL UNIQUE REFERENCES people."Team" ON DELETE CASCADE ON UPDATE CASCADE
);

CREATE TABLE people."Word" (
    id serial PRIMARY KEY, name text NOT NULL UNIQUE, value integer NOT NULL, fence bigint NOT NULL DEFAULT 0,
    "create" integer NOT NULL DEFAULT 0, data jsonb, "where" integer NOT NULL DEFAULT 0,
    set integer NOT NULL DEFAULT 0, delete integer NOT NULL DEFAULT 0, "limit" integer NOT NULL DEFAULT 0,
    "is" integer NOT NULL DEFAULT 0,
    parent integer REFERENCES people."Word" ON DELETE SET NULL ON UPDATE CASCADE
);

CREATE TABLE people."_MemberToTag" (
    "A" integer NOT NULL REFERENCES people."Member" ON DELETE CASCADE ON UPDATE CASCADE,
    "B" integer NOT NULL REFERENCES people."Tag" ON DELETE CASCADE ON UPDATE CASCADE,
    PRIMARY KEY ("A", "B")
);

CREATE TABLE people._fans (
    "A" integer NOT NULL REFERENCES people."Member" ON DELETE CASCADE ON UPDATE CASCADE,
    "B" integer NOT NULL REFERENCES people."Member" ON DELETE CASCADE ON UPDATE CASCADE,
    PRIMARY KEY ("A", "B")
);
