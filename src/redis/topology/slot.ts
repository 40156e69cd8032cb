const SLOTS = 16_384;
/** CRC-16/XMODEM. */
const POLYNOMIAL = 0x1021;

/**
 * The Cluster slot of a name: hashed is the text between the first `{` and the next `}`, if there is any, else the
 * whole name.
 */
export function slotOf(name: string): number {
  const start = name.indexOf('{') + 1;
  const end = start === 0 ? -1 : name.indexOf('}', start);
  return crc16(Buffer.from(end > start ? name.slice(start, end) : name)) % SLOTS;
}

function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL;
    crc &= 0xffff;
  }
  return crc;
}
