// Draws the first numeric attribute of a dense array with two or more dimensions, from the files of this server: all of
// a small raster in steps, or a block in the middle of a large one.
(async () => {
  const place = document.getElementById("picture");
  const views = { INT8: Int8Array, UINT8: Uint8Array, INT16: Int16Array, UINT16: Uint16Array, INT32: Int32Array,
    UINT32: Uint32Array, FLOAT32: Float32Array, FLOAT64: Float64Array };
  const most = 512, few = 4e6;
  const schema = await (await fetch("schema.json")).json();
  const shape = schema.shape || [];
  const attribute = (schema.attributes || []).find((one) => views[one.datatype] && one.values_per_cell === 1);
  if (schema.array_type !== "dense" || shape.length < 2 || shape.some((n) => !(n > 0)) || !attribute) return;
  const [height, width] = shape.slice(-2);
  const isSmall = height * width <= few;
  const axis = (length) => {
    if (isSmall) return [0, length, Math.ceil(length / most)];
    const start = Math.max(0, Math.floor((length - most) / 2));
    return [start, Math.min(length, start + most), 1];
  };
  const axes = [height, width].map(axis);
  const [rows, columns] = axes.map(([from, to, step]) => Math.ceil((to - from) / step));
  const selection = shape.slice(0, -2).map(() => "0").concat(axes.map((axis) => axis.join(":"))).join(",");
  const bytes = async (file) => {
    const reply = await fetch(`islice/${encodeURIComponent(selection)}/${encodeURIComponent(file)}`);
    return reply.ok ? reply.arrayBuffer() : new ArrayBuffer(0);
  };
  const values = new views[attribute.datatype](await bytes(attribute.files[0]));
  const validity = attribute.nullable && new Uint8Array(await bytes(attribute.files.find((file) => file.endsWith(".valid.u8"))));
  const fill = Number(attribute.fill);
  const isValue = (value, at) => Number.isFinite(value) && (validity ? validity[at] === 1 : value !== fill);
  const sorted = values.filter(isValue).sort();
  if (values.length !== rows * columns || sorted.length === 0) return;
  const last = sorted.length - 1;
  // Grey between the 2nd and the 98th percentile, so that a few extreme values do not hide the others.
  const black = sorted[Math.floor(0.02 * last)], white = sorted[Math.ceil(0.98 * last)];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  values.forEach((value, at) => {
    const grey = white > black ? (255 * (value - black)) / (white - black) : 128;
    // Cells without a value stay transparent.
    if (isValue(value, at)) image.data.set([grey, grey, grey, 255], 4 * at);
  });
  context.putImageData(image, 0, 0);
  // The shortest number that is the value.
  const text = (value) => {
    const digits = [1, 2, 3, 4, 5, 6, 7, 8].map((count) => Number(value.toPrecision(count)));
    const short = attribute.datatype === "FLOAT32" && digits.find((number) => Math.fround(number) === value);
    return String(short || value);
  };
  const steps = axes.map(([, , step]) => step);
  const parts = [
    shape.length > 2 && "the first plane",
    !isSmall && "a block in the middle",
    steps[0] > 1 && `one row in ${steps[0]}`,
    steps[1] > 1 && `one column in ${steps[1]}`,
  ].filter(Boolean);
  const caption = document.createElement("figcaption");
  caption.textContent = `${attribute.name}, ${parts.join(", ") || "all of it"}: the values here are from ` +
    `${text(sorted[0])} to ${text(sorted[last])}; up to ${text(black)} is black, from ${text(white)} on white`;
  place.append(canvas, caption);
})();
