"""What the Redis journal does on the server: one Lua script for each change, so that it happens wholly or not at all.

A script touches the two keys of one run and no other: its hash (``KEYS[1]``: the facts of
:mod:`agents_progress.journal.rules`, with its row and snapshot) and its stream (``KEYS[2]``), or one key of its own.
Envelope n is entry ``n-0``. A seal is entry ``head-1`` and a tombstone the last possible one: marks by which a blocked
XREAD learns of them. Scripts answer with a word and what belongs to it; the words become exceptions elsewhere.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple


class Script(NamedTuple):
    """A Lua script and the name the server knows it by."""

    text: str
    sha: str


def _script(*parts: str) -> Script:
    text = "".join(parts)
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


_WHEN_FULL: Final = "#!lua flags=allow-oom\n"
"""What frees memory, or ends a run, is done on a server that is full, too."""

END_OF_STREAM: Final = "18446744073709551615-0"

_FACTS: Final = """
local names = {'erased', 'generation', 'sealed', 'head', 'floor', 'deadline', 'claim', 'standing', 'born', 'glance'}
local values = redis.call('HMGET', KEYS[1], unpack(names))
local run = {}
for i, name in ipairs(names) do run[name] = values[i] end
local head, floor = tonumber(run.head or 0), tonumber(run.floor or 0)
local generation = tonumber(run.generation or 0)
local function id(seq, part) return string.format('%.0f-%d', seq, part or 0) end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function text(number) return string.format('%.0f', number) end
local function wrote(seq, updated, standing, glance)
  local written, glanced = text(seq) .. ' ' .. text(now()), text(seq) .. ' ' .. glance
  redis.call('HSET', KEYS[1], 'head', text(seq), 'updated', updated, 'standing', standing, 'written', written,
    'glance', glanced)
end
local function seal()
  if not run.sealed then
    redis.call('XADD', KEYS[2], id(head, 1), 'sealed', '1')
    redis.call('HSET', KEYS[1], 'sealed', '1')
  end
  redis.call('HDEL', KEYS[1], 'deadline')
end
local function field(name, marked)
  if marked ~= '' then redis.call('HSET', KEYS[1], name, string.sub(marked, 2)) end
end
local function begin(row, owner, tenant, born, claim)
  redis.call('HSET', KEYS[1], 'row', row, 'born', born, 'claim', claim)
  field('owner', owner)
  field('tenant', tenant)
end
local function fenced(lease)
  if lease == '' then return generation > 0 end
  return tonumber(lease) ~= generation
end
"""
"""The facts of a run by name, and what several scripts do with them."""

_SCOPE: Final = """
local function hidden(owner, tenant)
  local own = redis.call('HMGET', KEYS[1], 'owner', 'tenant')
  for i, marked in ipairs({owner, tenant}) do
    if marked ~= '' and (not own[i] or '=' .. own[i] ~= marked) then return true end
  end
  return false
end
"""

APPEND: Final = _script(
    _FACTS,
    """
local lease, claim, first, base, standing, updated = unpack(ARGV, 1, 6)
local ttl, glance, offset = ARGV[11], ARGV[12], 12
first = tonumber(first)
local last = first + #ARGV - offset - 1
if run.erased then return {'erased'} end
if fenced(lease) then return {'fenced'} end
if run.sealed then return {'sealed'} end
if claim ~= '' and head > 0 and run.claim ~= claim then return {'exists'} end
if first > head + 1 then return {'gap', head} end
local from, upto = math.max(first, floor + 1), math.min(head, last)
if from <= upto then
  for i, entry in ipairs(redis.call('XRANGE', KEYS[2], id(from), id(upto))) do
    if entry[2][2] ~= ARGV[offset + from - first + i] then return {'differs', head, floor} end
  end
end
if last <= head then return {'known', run.born} end
if tonumber(base) ~= head then return {'head', head, run.standing, run.glance} end
for seq = head + 1, last do
  redis.call('XADD', KEYS[2], id(seq), 'e', ARGV[offset + seq - first + 1])
end
wrote(last, updated, standing, glance)
if head > 0 then return {'stored', run.born} end
begin(ARGV[7], ARGV[8], ARGV[9], ARGV[10], claim)
local deadline = ttl ~= '' and text(now() + ttl)
if deadline then redis.call('HSET', KEYS[1], 'deadline', deadline) end
return {'stored', ARGV[10], deadline}
""",
)
"""ARGV: lease, claim, first, base, standing, updated, row, owner, tenant, born, ttl of a reservation, glance, bodies.

``standing`` and ``glance`` are those after the batch, worked out from the log up to ``base``: when the log ends
elsewhere the script says where, and is called again. ``claim`` is new for each claim, so that one that is sent again
knows itself.
"""

SEAL: Final = _script(
    _WHEN_FULL,
    _FACTS,
    """
if run.erased then return {'erased'} end
if fenced(ARGV[1]) then return {'fenced'} end
if head == 0 and generation == 0 then return {'not_found'} end
seal()
local kept = redis.call('HMGET', KEYS[1], 'key', 'lease_claim')
return {'done', kept[1], kept[2]}
""",
)

READ: Final = _script(
    _FACTS,
    _SCOPE,
    f"""
local after, limit = tonumber(ARGV[1]), tonumber(ARGV[2])
if run.erased then return {{'erased', '{END_OF_STREAM}'}} end
local seen = id(head, run.sealed and 1 or 0)
if head == 0 and not run.sealed or hidden(ARGV[3], ARGV[4]) then return {{'none', seen}} end
if after < floor then return {{'pruned', floor, redis.call('HGET', KEYS[1], 'snapshot')}} end
local bodies = {{}}
if after < head and limit > 0 then
  local entries = redis.call('XRANGE', KEYS[2], id(after + 1), id(head), 'COUNT', limit)
  if not entries[1] or entries[1][1] ~= id(after + 1) then return {{'damaged', seen}} end
  for i, entry in ipairs(entries) do bodies[i] = entry[2][2] end
end
return {{'read', seen, (run.sealed and after + #bodies >= head) and 1 or 0, bodies}}
""",
)
"""ARGV: after, limit, owner, tenant. Answers with the entry up to which the caller has now seen the stream."""

SNAPSHOT: Final = _script(
    _FACTS,
    _SCOPE,
    """
if run.erased then return {'erased'} end
if hidden(ARGV[1], ARGV[2]) then return {'none'} end
return {'found', redis.call('HGET', KEYS[1], 'snapshot')}
""",
)

ROW: Final = _script(
    _FACTS,
    _SCOPE,
    """
if run.erased then return {'erased'} end
local row, updated, written, read = unpack(redis.call('HMGET', KEYS[1], 'row', 'updated', 'written', 'read'))
if not row or hidden(ARGV[1], ARGV[2]) then return {'none'} end
local sealed = run.sealed and 1 or 0
local facts = {run.standing, run.glance}
return {'row', row, head, updated, facts, sealed, generation, text(now()), written, read, run.deadline}
""",
)
"""ARGV: owner, tenant. Moments are in milliseconds; ``written`` is the number of the newest envelope, a space and its
moment, unless an older release wrote that envelope. ``facts`` are the standing and the glance, as they are stored.
"""

ASK: Final = _script(
    _WHEN_FULL,
    _FACTS,
    _SCOPE,
    """
local opening, line = ARGV[1], ARGV[2]
if run.erased then return {'erased'} end
if head == 0 or hidden(ARGV[3], ARGV[4]) then return {'not_found'} end
local stored = redis.call('HGET', KEYS[1], 'requests') or ''
for other in string.gmatch(stored, '[^\\n]+') do
  if string.sub(other, 1, #opening) == opening then return {'stored', other} end
end
redis.call('HSET', KEYS[1], 'requests', stored .. line .. '\\n')
return {'stored', line}
""",
)
"""ARGV: how a request with this key begins, the request as one line, owner, tenant."""

RING: Final = _script(_WHEN_FULL, "return redis.call('XADD', KEYS[1], 'MAXLEN', 1, '*', 'asked', '1')")
"""Wakes whoever waits for requests: a stream of one entry, of which only its newness counts."""

TOUCH: Final = _script(
    _WHEN_FULL,
    _FACTS,
    """
if run.erased or run.sealed or redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], 'read', text(now()))
return 1
""",
)

KEEP: Final = _script(
    _WHEN_FULL,
    _FACTS,
    """
local upto, seq, snapshot = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
if run.erased then return {'erased'} end
local kept = tonumber(redis.call('HGET', KEYS[1], 'snapshot_seq') or -1)
if seq > kept then redis.call('HSET', KEYS[1], 'snapshot', snapshot, 'snapshot_seq', text(seq)) end
if upto <= floor then return {'kept', 0} end
redis.call('HSET', KEYS[1], 'floor', text(upto))
if upto >= head then redis.call('HDEL', KEYS[1], 'pause') end
redis.call('XTRIM', KEYS[2], 'MINID', '=', id(upto + 1))
return {'kept', upto - floor}
""",
)
"""ARGV: the sequence number up to which to prune (0 prunes nothing), that of the snapshot, the snapshot."""

KEEP_PAUSE: Final = _script(
    _FACTS,
    """
if run.erased then return {'erased'} end
if head == 0 then return {'not_found'} end
if fenced(ARGV[1]) then return {'fenced'} end
if run.sealed then return {'sealed'} end
redis.call('HSET', KEYS[1], 'pause', ARGV[2])
return {'kept'}
""",
)
"""ARGV: lease, the pause."""

PAUSE: Final = _script(
    _FACTS,
    _SCOPE,
    """
if run.erased then return {'erased'} end
if hidden(ARGV[1], ARGV[2]) then return {'none'} end
return {'found', redis.call('HGET', KEYS[1], 'pause')}
""",
)
"""ARGV: owner, tenant."""

LEASE: Final = _script(
    _FACTS,
    """
local ttl, claim, key = tonumber(ARGV[1]), ARGV[2], ARGV[3]
if run.erased then return {'erased'} end
if run.sealed then return {'sealed'} end
if generation > 0 and run.deadline then
  if redis.call('HGET', KEYS[1], 'lease_claim') ~= claim then return {'held'} end
  return {'leased', generation, run.deadline}
end
local deadline = text(now() + ttl)
redis.call('HSET', KEYS[1], 'deadline', deadline, 'lease_claim', claim, 'key', key)
return {'leased', redis.call('HINCRBY', KEYS[1], 'generation', 1), deadline}
""",
)
"""ARGV: ttl, claim (as of APPEND), exclusive key."""

RENEW: Final = _script(
    _FACTS,
    """
if run.erased or run.sealed or fenced(ARGV[1]) or not run.deadline then return {'gone'} end
local moment = now()
if tonumber(run.deadline) <= moment then return {'gone'} end
local deadline = text(moment + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'deadline', deadline)
local kept = redis.call('HMGET', KEYS[1], 'key', 'lease_claim')
return {'renewed', run.deadline, deadline, kept[1], kept[2]}
""",
)

LOSE: Final = _script(
    _WHEN_FULL,
    _FACTS,
    """
local base, ruled, standing, updated, body = unpack(ARGV, 1, 5)
if run.erased or run.sealed or not run.deadline then return {'settled'} end
if tonumber(run.deadline) > now() then return {'live', run.deadline} end
if tonumber(base) ~= head or tonumber(ruled) ~= generation then return {'moved'} end
if body ~= '' then
  if head == 0 then begin(ARGV[6], '', '', ARGV[7], '') end
  redis.call('XADD', KEYS[2], id(head + 1), 'e', body)
  wrote(head + 1, updated, standing, ARGV[8])
  head = head + 1
end
seal()
redis.call('HINCRBY', KEYS[1], 'generation', 1)
return {'lost'}
""",
)
"""ARGV: the head and generation that were seen, then as of APPEND: standing, updated, body, row, born, glance."""

ERASE: Final = _script(
    _WHEN_FULL,
    _FACTS,
    f"""
if run.erased or redis.call('EXISTS', KEYS[1]) == 0 then return {{'none'}} end
local kept = redis.call('HMGET', KEYS[1], 'key', 'lease_claim')
local snapshots = redis.call('HEXISTS', KEYS[1], 'snapshot')
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[1], 'erased', '1')
redis.call('XADD', KEYS[2], '{END_OF_STREAM}', 'erased', '1')
return {{'erased', head > 0 and 1 or 0, head - floor, snapshots, kept[1], kept[2]}}
""",
)

TAKE_KEY: Final = _script(
    """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ''
"""
)
"""ARGV: claim, ttl. An exclusive key belongs to the lease with this claim; the answer is that of another holder."""

FREE_KEY: Final = _script(
    """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""
)

DUE: Final = _script(
    """
local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', time[1] * 1000 + math.floor(time[2] / 1000))
"""
)

SCRIPTS: Final = (
    APPEND,
    SEAL,
    READ,
    SNAPSHOT,
    ROW,
    ASK,
    RING,
    TOUCH,
    KEEP,
    KEEP_PAUSE,
    PAUSE,
    LEASE,
    RENEW,
    LOSE,
    ERASE,
    TAKE_KEY,
    FREE_KEY,
    DUE,
)
