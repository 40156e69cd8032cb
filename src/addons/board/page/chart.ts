// Bars, drawn as SVG. Positions are attributes: the page allows no inline style.

const SVG = 'http://www.w3.org/2000/svg';

/** A bar for each count. `most`: what the highest bar stands for; charts beside each other have one scale. */
export function bars(counts: readonly number[], most: number, label: string, height = 28): SVGElement {
  const svg = document.createElementNS(SVG, 'svg');
  const attributes = {
    viewBox: `0 0 ${counts.length * 4} ${height}`,
    preserveAspectRatio: 'none',
    height,
    role: 'img',
  };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, String(value));
  svg.setAttribute('aria-label', label);
  counts.forEach((count, at) => {
    if (count === 0) return;
    // By the square root: a few are seen beside many.
    const tall = Math.max(1.5, Math.sqrt(count / most) * height);
    const bar = document.createElementNS(SVG, 'rect');
    const place = { x: at * 4, y: height - tall, width: 3, height: tall };
    for (const [name, value] of Object.entries(place)) bar.setAttribute(name, value.toFixed(1));
    svg.append(bar);
  });
  return svg;
}
