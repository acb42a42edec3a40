/**
 * SHA-256 at once. The browser's own is asynchronous and missing on pages that came without TLS, and a fold waits for
 * nobody: a verdict is bound to the digest of an output, a snapshot names envelopes by theirs.
 */

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const ROUNDS = new Uint32Array([
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
]);

/** The same of the square roots of the first eight. */
const START = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

const turned = (word, by) => (word >>> by) | (word << (32 - by));

/**
 * @param {string} text
 * @returns {string} the SHA-256 of its UTF-8 bytes, as 64 hex digits
 */
export function sha256(text) {
  const blocks = padded(new TextEncoder().encode(text));
  const state = new Uint32Array(START);
  const words = new Uint32Array(64);
  for (let place = 0; place < blocks.byteLength; place += 64) {
    for (let n = 0; n < 16; n += 1) words[n] = blocks.getUint32(place + 4 * n);
    for (let n = 16; n < 64; n += 1) {
      const [early, late] = [words[n - 15], words[n - 2]];
      words[n] = words[n - 16] + (turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)) +
        words[n - 7] + (turned(late, 17) ^ turned(late, 19) ^ (late >>> 10));
    }
    mix(state, words);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

/** The bytes, a one bit, zeros, and the length in bits: whole blocks of 64 bytes. */
function padded(bytes) {
  const size = 64 * Math.ceil((bytes.length + 9) / 64);
  const whole = new Uint8Array(size);
  whole.set(bytes);
  whole[bytes.length] = 0x80;
  const blocks = new DataView(whole.buffer);
  blocks.setUint32(size - 8, Math.floor(bytes.length / 2 ** 29));
  blocks.setUint32(size - 4, bytes.length << 3);
  return blocks;
}

function mix(state, words) {
  let [a, b, c, d, e, f, g, h] = state;
  for (let n = 0; n < 64; n += 1) {
    const chosen = (e & f) ^ (~e & g);
    const major = (a & b) ^ (a & c) ^ (b & c);
    const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + chosen + ROUNDS[n] + words[n];
    const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + major;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, n) => { state[n] += word; });
}
