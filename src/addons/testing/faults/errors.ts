/** The fault that a test asked for did not happen. The message says why, and what to do. */
export class FaultMissed extends Error {
  override readonly name = 'FaultMissed';
}
