// The first row of a table, which names its columns.

const DELIMITERS = [",", ";", "\t", "|"];
const HEAD_CHARACTERS = 64 * 1024;

export const isTable = (name) => /\.[ct]sv(\.gz)?$/i.test(name);

/** The beginning of a file, which may be compressed; "" of one that is broken. */
async function headOf(file) {
  const unpacked = /\.gz$/i.test(file.name) ? file.stream().pipeThrough(new DecompressionStream("gzip")) : file.stream();
  const reader = unpacked.pipeThrough(new TextDecoderStream()).getReader();
  let head = "";
  try {
    while (head.length < HEAD_CHARACTERS) {
      const { value, done } = await reader.read();
      if (done) break;
      head += value;
    }
  } catch {
    // The server says what is wrong with it.
  }
  reader.cancel().catch(() => {});
  return head;
}

/** The cells of its first row, by the delimiter that stands most often in it outside quotation marks. */
export async function namesOf(file) {
  const head = await headOf(file);
  if (/\.tsv(\.gz)?$/i.test(file.name)) return head.split(/\r?\n/, 1)[0].split("\t");
  const line = head.replace(/"(?:[^"]|"")*"/g, "").split(/\r?\n/, 1)[0];
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length);
  const delimiter = DELIMITERS[counts.indexOf(Math.max(...counts))];
  const cell = new RegExp(`("(?:[^"]|"")*"|[^${delimiter}\\r\\n]*)([${delimiter}]?)`, "y");
  const names = [];
  for (let found = cell.exec(head); found; found = found[2] ? cell.exec(head) : null)
    names.push(found[1].replace(/^"(.*)"$/s, "$1").replaceAll('""', '"'));
  return names;
}
