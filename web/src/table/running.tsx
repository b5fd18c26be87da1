// Work over all rows while it runs: how far it is, and a button that ends it.
import type { Progress } from "./rows";

export function Running({ label, progress, onCancel }: { label: string; progress: Progress; onCancel: () => void }) {
  return (
    <span class="running" role="status">
      <progress max={progress.all} value={progress.done} aria-label={label} /> {label} … <button class="link" onClick={onCancel}>cancel</button>
    </span>
  );
}
