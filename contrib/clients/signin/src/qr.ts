/** QR codes (ISO/IEC 18004) at error correction level M, in versions 1-10: links of up to 213 bytes. */

/** By version: data codewords, error correction codewords of a block, and blocks (tables 7 and 9). */
const VERSIONS = [
  [16, 10, 1],
  [28, 16, 1],
  [44, 26, 1],
  [64, 18, 2],
  [86, 24, 2],
  [108, 16, 4],
  [124, 18, 4],
  [154, 22, 4],
  [182, 22, 5],
  [216, 26, 5],
] as const;
/** Level M and mask 0, with their error correction (annex C). */
const FORMAT = 0x5412;
/** Versions 7-10 with their error correction (annex D). */
const VERSION_INFORMATION = [0x07c94, 0x085bc, 0x09a99, 0x0a4d3];
/** Dark rings around a centre, a bit each: those of the finders, and of the alignment patterns. */
const FINDER = 0b01011;
const ALIGNMENT = 0b101;

const binary = (value: number, width = 8) => value.toString(2).padStart(width, "0");

/** The dark modules as the `d` of an SVG path, and the code's width in modules; null for a longer text. */
export function qrPath(text: string): { size: number; d: string } | null {
  const bytes = [...new TextEncoder().encode(text)];
  // 4 bits of mode, 8 or 16 of length, and 4 of terminator: whole bytes.
  const version = VERSIONS.findIndex(([capacity], at) => bytes.length + (at < 9 ? 2 : 3) <= capacity) + 1;
  const fields = VERSIONS[version - 1];
  if (!fields) return null;
  const [capacity, checkLength, blocks] = fields;
  const bits = `0100${binary(bytes.length, version < 10 ? 8 : 16)}${bytes.map((byte) => binary(byte)).join("")}0000`;
  const data = bits.match(/.{8}/g)!.map((byte) => parseInt(byte, 2));
  for (let pad = 236; data.length < capacity; pad ^= 236 ^ 17) data.push(pad);
  const grid = draw(version, interleave(data, checkLength, blocks).map((byte) => binary(byte)).join(""));
  const d = grid.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return { size: grid.length, d };
}

/** Multiplies in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((b >> bit) & 1) * a);
  }
  return product;
}

/** The Reed-Solomon codewords of a block. */
function check(data: number[], length: number): number[] {
  const generator = Array<number>(length).fill(0);
  generator[length - 1] = 1;
  for (let step = 0, root = 1; step < length; step++, root = multiply(root, 2)) {
    generator.forEach((value, at) => (generator[at] = multiply(value, root) ^ (generator[at + 1] ?? 0)));
  }
  const rest = Array<number>(length).fill(0);
  for (const byte of data) {
    const factor = byte ^ rest.shift()!;
    rest.push(0);
    generator.forEach((value, at) => (rest[at]! ^= multiply(value, factor)));
  }
  return rest;
}

/** Splits the data into blocks, the shorter ones first, and takes their codewords in turn (section 7.6). */
function interleave(data: number[], checkLength: number, blocks: number): number[] {
  const parts = Array.from({ length: blocks }, (_, at) => data.splice(0, (data.length / (blocks - at)) | 0));
  const turn = (lists: number[][]) => lists.at(-1)!.flatMap((_, at) => lists.flatMap((list) => list[at] ?? []));
  return [...turn(parts), ...turn(parts.map((part) => check(part, checkLength)))];
}

/** The modules, row by row and 1 where dark. What is not drawn yet is free for data. */
function draw(version: number, bits: string): number[][] {
  const size = version * 4 + 17;
  const last = size - 7;
  const grid: number[][] = Array.from({ length: size }, () => []);
  const square = (row: number, column: number, radius: number, rings: number) => {
    for (let y = -radius; y <= radius; y++) {
      for (let x = -radius; x <= radius; x++) {
        const cells = grid[row + y];
        const ring = Math.max(Math.abs(x), Math.abs(y));
        if (cells && column + x >= 0 && column + x < size) cells[column + x] = (rings >> ring) & 1;
      }
    }
  };
  for (const [row, column] of [[3, 3], [3, size - 4], [size - 4, 3]] as const) square(row, column, 4, FINDER);
  const centres = version < 2 ? [] : version < 7 ? [6, last] : [6, (size - 1) / 2, last];
  for (const row of centres) {
    for (const column of centres) grid[row]![column] ?? square(row, column, 2, ALIGNMENT);
  }
  for (let at = 0; at < size; at++) grid[6]![at] = grid[at]![6] ??= ~at & 1;
  for (let at = 0; at < 15; at++) {
    const dark = (FORMAT >> at) & 1;
    grid[at < 6 ? at : at < 8 ? at + 1 : size - 15 + at]![8] = dark;
    grid[8]![at < 8 ? size - 1 - at : at < 9 ? 7 : 14 - at] = dark;
  }
  grid[size - 8]![8] = 1;
  for (let at = 0; version > 6 && at < 18; at++) {
    const near = (at / 3) | 0;
    const far = size - 11 + (at % 3);
    grid[near]![far] = grid[far]![near] = (VERSION_INFORMATION[version - 7]! >> at) & 1;
  }

  // In columns of two from the right, up and down in turn, around the vertical timing pattern. One mask does
  // for all: what links hold, random tokens above all, is as irregular under each.
  let next = 0;
  for (let right = size - 1; right > 0; right -= right === 8 ? 3 : 2) {
    for (let step = 0; step < size; step++) {
      const row = (right < 6 ? right + 1 : right) & 2 ? step : size - 1 - step;
      for (const column of [right, right - 1]) {
        // After the last bit: NaN, which counts as 0.
        grid[row]![column] ??= +bits[next++]! ^ (~(row + column) & 1);
      }
    }
  }
  return grid;
}
