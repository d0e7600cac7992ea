// @ts-check
// Changes of a run, written as the program writes them and counted from 1: `cross:off`, `cross:3-5`, `decoder:*-2`,
// `cross.2.4:zero`, `cross.2.4:3=5`, `cross.2.4:3=5@0.75+1@0.25`, `cross.2.4:3=uniform`; several are separated by commas.
import { later, say } from "../../viewer/language.js";
import { InputError, shown } from "./text.js";

const EDIT = /^(encoder|decoder|cross)(?:\.(\d{1,3})(?:\.(\d{1,3}))?)?:(.+)$/;
const MOST_EDITS = 200;

export class Edits {
  // sizes: of each kind {layers, heads, queries, keys}.
  constructor(text, sizes) {
    const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
    if (parts.length > MOST_EDITS) throw new InputError(say("{count} edits are too many; at most {most} are possible.", { count: parts.length, most: MOST_EDITS }));
    this.all = parts.map((part) => readEdit(part, sizes));
    this.texts = parts;
  }

  // Whether a row of the decoder may see a later token, so that earlier rows must be computed again at every step.
  get looksAhead() {
    return this.all.some(({ kind, what }) => kind === "decoder" && what !== "zero");
  }

  // What the edits do to one attention: functions that change its mask, its weights and the heads' outputs.
  at({ kind, layer, first }, nHeads, nQueries, nKeys) {
    const here = this.all.filter((edit) => edit.kind === kind && (edit.layer ?? layer) === layer);
    // Calls `change` with each cell that an edit is about: its place in (head, query, key), and its key.
    const cells = (edit, change) => {
      for (let head = edit.head ?? 0; head < nHeads && (edit.head ?? head) === head; head += 1) {
        for (let row = 0; row < nQueries; row += 1) {
          if ((edit.query ?? row + first) !== row + first) continue;
          for (let key = 0; key < nKeys; key += 1) change((head * nQueries + row) * nKeys + key, key);
        }
      }
    };
    const forced = here.filter(({ what, shares }) => what === "force" && Object.keys(shares ?? {}).every((key) => key < nKeys));
    const share = ({ shares }, key) => (shares ? shares[key] ?? 0 : 1 / nKeys);
    return {
      mask: (masked) => {
        for (const edit of here) {
          if (edit.what === "off") cells(edit, (place) => { masked[place] = 0; });
          if (edit.what === "flip") cells(edit, (place, key) => { if ((edit.key ?? key) === key) masked[place] ^= 1; });
          // What a forced row looks at is allowed, whatever the mask says.
          if (forced.includes(edit)) cells(edit, (place, key) => { if (share(edit, key)) masked[place] = 0; });
        }
        return masked;
      },
      weights: (weights) => {
        for (const edit of forced) cells(edit, (place, key) => { weights[place] = share(edit, key); });
        return weights;
      },
      heads: (heads) => {
        const width = heads.columns / nHeads, off = here.filter(({ what }) => what === "zero");
        const isOff = (head) => off.some((edit) => (edit.head ?? head) === head);
        return { ...heads, values: heads.values.map((value, i) => (isOff(Math.floor((i % heads.columns) / width)) ? 0 : value)) };
      },
    };
  }
}

function readEdit(part, sizes) {
  const match = EDIT.exec(part), edit = shown(part);
  const notUnderstood = () =>
    new InputError(say("Edit “{edit}” is not understood; edits look like cross:off, cross:3-5, cross:3-*, cross.2.4:zero, cross.2.4:3=5.", { edit }));
  if (!match) throw notUnderstood();
  const [, kind, layer, head, form] = match, size = sizes[kind];
  const number = (digits, name, most) => {
    if (digits === undefined || digits === "*") return null;
    if (Number(digits) < 1 || Number(digits) > most) {
      throw new InputError(say("Edit “{edit}”: there is no {name} {number} here; possible is 1 to {most}.", { edit, name: say(name), number: digits, most }));
    }
    return Number(digits) - 1;
  };
  const place = { kind, layer: number(layer, later("layer"), size.layers), head: number(head, later("head"), size.heads) };
  if (form === "off" || form === "zero") return { ...place, what: form };
  const cell = /^(\d{1,3}|\*)-(\d{1,3}|\*)$/.exec(form);
  if (cell && form !== "*-*") {
    return { ...place, what: "flip", query: number(cell[1], later("query"), size.queries), key: number(cell[2], later("key"), size.keys) };
  }
  const row = /^(\d{1,3}|\*)=(.+)$/.exec(form);
  if (!row) throw notUnderstood();
  const query = number(row[1], later("query"), size.queries);
  if (row[2] === "uniform") return { ...place, what: "force", query, shares: null };
  const all = row[2].split("+").map((share) => /^(\d{1,3})(?:@(\d{1,3}(?:\.\d{1,6})?))?$/.exec(share) ?? [null]);
  if (!all.every(([found]) => found)) throw notUnderstood();
  const shares = Object.fromEntries(all.map(([, key, weight]) => [number(key, later("key"), size.keys), Number(weight ?? 1)]));
  const total = Object.values(shares).reduce((sum, weight) => sum + weight, 0);
  if (Math.abs(total - 1) > 1e-5 || Object.keys(shares).length < all.length) {
    throw new InputError(say("Edit “{edit}”: the weights of a row add up to 1 and name each key once.", { edit }));
  }
  return { ...place, what: "force", query, shares };
}
