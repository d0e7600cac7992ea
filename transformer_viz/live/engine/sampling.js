// @ts-check
// How the next token is chosen from its logits: the most probable one, or one that is drawn (Fan et al. 2018, section 5.4;
// Holtzman et al. 2020, section 3.1).

// A function from logits to {id, probability}; of greedy choice the probability is null. `ban` are ids that are never chosen.
export function chooser({ strategy, temperature = 1, top_k: most = Infinity, top_p: share = 1, seed = 0 }, ban) {
  const random = new MersenneTwister(seed);
  return (logits) => {
    const allowed = Float64Array.from(logits, (logit, id) => (ban.includes(id) ? -Infinity : logit));
    const order = ranking(allowed);
    if (strategy !== "sample") return { id: order[0], probability: null };
    const draw = random.uniform(), first = allowed[order[0]];
    // From the most probable token on, as many as may be drawn.
    const kept = temperature === 0 ? 1 : Math.min(most, order.length);
    const scaled = order.slice(0, kept).map((id) => Math.exp((allowed[id] - first) / (temperature || 1)));
    const whole = scaled.reduce((a, b) => a + b);
    const chances = new Float64Array(logits.length);
    let before = 0;
    scaled.forEach((part, place) => {
      if (place === 0 || before < share) chances[order[place]] = part / whole;
      before += part / whole;
    });
    // The token, in the order of ids, at which the running sum of chances passes the draw.
    const total = chances.reduce((a, b) => a + b);
    let sum = 0, id = chances.findLastIndex((chance) => chance > 0);
    for (let i = 0; i < chances.length; i += 1) {
      sum += chances[i];
      if (sum > draw * total) {
        id = i;
        break;
      }
    }
    return { id, probability: chances[id] / total };
  };
}

// All ids, the most probable first; of equal ones the lowest.
export function ranking(logits) {
  return Array.from(logits, (_, id) => id).sort((a, b) => logits[b] - logits[a] || a - b);
}

// The random numbers that PyTorch draws on the CPU (Matsumoto and Nishimura 1998): the same seed draws the same tokens.
class MersenneTwister {
  constructor(seed) {
    this.state = new Uint32Array(624);
    this.state[0] = seed;
    for (let i = 1; i < 624; i += 1) {
      const before = this.state[i - 1] ^ (this.state[i - 1] >>> 30);
      this.state[i] = Math.imul(1812433253, before) + i;
    }
    this.at = 624;
  }

  // 32 random bits.
  next() {
    const { state } = this;
    if (this.at === 624) {
      for (let i = 0; i < 624; i += 1) {
        const bits = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
        state[i] = state[(i + 397) % 624] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
      }
      this.at = 0;
    }
    let y = state[this.at];
    this.at += 1;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  // A number from 0 to 1, of the lower 53 of 64 bits.
  uniform() {
    const high = this.next() & 0x1fffff, low = this.next();
    return (high * 2 ** 32 + low) / 2 ** 53;
  }
}
