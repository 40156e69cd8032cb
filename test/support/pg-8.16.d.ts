// Of this version no types are installed; those of pg have what the tests use.
declare module 'pg-8.16' {
  import pg from 'pg';
  export default pg;
}
