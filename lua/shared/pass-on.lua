-- pass_on: offers a free key to the first process in the queue that is still subscribed.
--
-- An offer is a short lease in the waiter's name. The waiter extends it: by a look, or by a renewal beside its work. If the waiter is frozen
-- or misses the message, the others wait no longer than the offer. The message goes to all waiting processes, because
-- each sets its timer by it. If it went to one process only and was lost, the others would sleep although the key
-- becomes free.
--
-- Without wake-ups, waiting processes look by themselves, and it is unknown whether a process is alive: the offer finds
-- out. Without offers (offer_time 0), the queue is not an order and only shows that a process waits.
--
-- Returns the chosen entry; `own` without an offer; nil if nobody waits, or if other software has filled the queue.

local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
  for _ = 1, MOST_ENDED do
    local entry = redis.call('LPOP', queue)
    if entry == false or #entry > LONGEST then return nil end
    if entry == own then return own end
    local holder, receiver = parts_of(entry)
    if holder and is_there(pubsub, wake, receiver) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
