// A group: its members with what they are, and the tree of all around it.
import { useEffect, useState } from "preact/hooks";
import { Busy, Trouble, useWork } from "../parts";
import { address, go, timeIn, type Place } from "../place";
import { json, type Names } from "../server";
import { open, type Member, type Schema } from "../schema";
import { arrayLine } from "../summary";
import { grouped, shown as safe } from "../values";

/** Members that a list shows at once, and those of them that are described. */
const MOST_MEMBERS = 200, MOST_DESCRIBED = 40;

/** A link within the page. */
export function Link({ names, class: kind, children, current }: { names: Names; class?: string; children: preact.ComponentChildren; current?: boolean }) {
  const place: Place = { names, state: new URLSearchParams() };
  return (
    <a class={kind} href={address(place)} aria-current={current ? "page" : undefined} onClick={(event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
      event.preventDefault();
      go(place);
    }}>{children}</a>
  );
}

export function Members({ names, members }: { names: Names; members: Member[] }) {
  const [filter, setFilter] = useState("");
  const found = members.filter((member) => member.name.toLowerCase().includes(filter.toLowerCase()));
  const shown = found.slice(0, MOST_MEMBERS);
  return (
    <section>
      {members.length > 20 && <label class="choice"><span>Find a member</span><input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></label>}
      <ul class="members">
        {shown.map((member, at) => (
          <li key={member.name} class={member.type}>
            <Link names={[...names, member.name]} class="member">{safe(member.name)}</Link>
            <span class="quiet">{member.state && member.state !== "ok" ? member.state : at < MOST_DESCRIBED && member.type === "array" ? <Described names={[...names, member.name]} /> : member.type}</span>
          </li>
        ))}
      </ul>
      {found.length > shown.length && <p class="quiet">{grouped(found.length - shown.length)} more; find one by its name</p>}
      {members.length === 0 && <p class="quiet">This group has no members.</p>}
    </section>
  );
}

function Described({ names }: { names: Names }) {
  const { result, error } = useWork((signal) => json<Schema>(names, "schema.json", signal), [names]);
  return <>{error !== undefined ? "cannot be read" : result ? arrayLine(result) : "array"}</>;
}

/** The members of a node that can be entered, for the tree. */
async function inner(names: Names, signal: AbortSignal): Promise<Member[]> {
  const node = await open(names, signal);
  if (node.kind === "group") return node.group.members;
  if (node.kind === "folder") return node.members.filter((member) => member.type === "directory").map((member) => ({ name: member.name, type: "folder" }));
  return [];
}

/** The tree below a node. The branches to the current node are open. */
export function Branch({ names, current }: { names: Names; current: Names }) {
  const { result, error } = useWork((signal) => inner(names, signal), [names]);
  const [most, setMost] = useState(MOST_MEMBERS);
  if (error !== undefined) return <Trouble error={error} />;
  if (!result) return <Busy />;
  return (
    <ul>
      {result.slice(0, most).map((member) => <Twig key={member.name} names={[...names, member.name]} member={member} current={current} />)}
      {result.length > most && <li><button class="link" onClick={() => setMost(most * 5)}>{grouped(result.length - most)} more</button></li>}
    </ul>
  );
}

function Twig({ names, member, current }: { names: Names; member: Member; current: Names }) {
  const { base, rest } = timeIn(current);
  const path = [...base, ...rest];
  const own = timeIn(names);
  const isOn = [...own.base, ...own.rest].every((name, at) => path[at] === name);
  const isCurrent = isOn && path.length === own.base.length + own.rest.length;
  const [isOpen, setOpen] = useState(isOn);
  useEffect(() => {
    if (isOn) setOpen(true);
  }, [isOn]);
  const canOpen = member.type !== "array" && member.state !== "missing";
  return (
    <li class={member.type}>
      {canOpen ? <button class="fold" aria-expanded={isOpen} aria-label={`${isOpen ? "Fold" : "Unfold"} ${safe(member.name)}`} onClick={() => setOpen(!isOpen)}>{isOpen ? "▾" : "▸"}</button> : <span class="fold" />}
      <Link names={names} current={isCurrent}>{safe(member.name)}</Link>
      {canOpen && isOpen && <Branch names={names} current={current} />}
    </li>
  );
}
