// Draws the first numeric attribute of a dense array with two or more dimensions, from the files of this server: all of
// a small raster in steps, or a block in the middle of a large one.
(async () => {
  const place = document.getElementById("picture");
  const views = { INT8: Int8Array, UINT8: Uint8Array, INT16: Int16Array, UINT16: Uint16Array, INT32: Int32Array,
    UINT32: Uint32Array, FLOAT32: Float32Array, FLOAT64: Float64Array };
  const query = place.dataset.query, most = 512, few = 4e6;
  const schema = await (await fetch("schema.json" + query)).json();
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
  const path = `islice/${encodeURIComponent(selection)}/${encodeURIComponent(attribute.files[0])}`;
  const reply = await fetch(path + query);
  if (!reply.ok) return;
  const values = new views[attribute.datatype](await reply.arrayBuffer());
  const fill = Number(attribute.fill);
  const isValue = (value) => Number.isFinite(value) && value !== fill;
  // Between the 2nd and the 98th percentile, so that a few extreme values do not hide the others.
  const sorted = values.filter(isValue).sort();
  if (values.length !== rows * columns || sorted.length === 0) return;
  const low = sorted[Math.floor(0.02 * (sorted.length - 1))], high = sorted[Math.ceil(0.98 * (sorted.length - 1))];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  values.forEach((value, at) => {
    const grey = high > low ? (255 * (value - low)) / (high - low) : 128;
    // Cells without a value stay transparent.
    if (isValue(value)) image.data.set([grey, grey, grey, 255], 4 * at);
  });
  context.putImageData(image, 0, 0);
  const caption = document.createElement("figcaption");
  caption.textContent = `${attribute.name}, ${isSmall ? "all of it" : "a block in the middle"}, ${Number(low.toPrecision(5))} to ${Number(high.toPrecision(5))}`;
  place.append(canvas, caption);
})();
