-- hint: tells the first process in the queue that the COMMIT of this holder has been sent.
--
-- KEYS  lease  queue
-- ARGV  holder  attempt  wake  pubsub
-- REPLY string: the holder that was told; '' if nobody waits, or this holder does not have the key any more
-- USES  shared/lease.lua shared/place.lua shared/wake.lua
--
-- `attempt`: the id of the holder's transaction in Postgres, by which the next process finds out whether it comes right
-- behind it. A hint keeps no place and gives no right, so it may be lost, late or wrong. Places of processes that have
-- ended are removed, so that the one that was told is the first.

if holder_of(KEYS[1]) ~= ARGV[1] then return '' end
for _ = 1, MOST_ENDED do
  local first = redis.call('LINDEX', KEYS[2], 0)
  if first == false or #first > LONGEST then return '' end
  local next, receiver = parts_of(first)
  if next and is_there(ARGV[4], ARGV[3], receiver) then
    wake_up(ARGV[4], ARGV[3], 'next ' .. next .. ' ' .. ARGV[1] .. ' ' .. ARGV[2])
    return next
  end
  redis.call('LPOP', KEYS[2])
end
return ''
