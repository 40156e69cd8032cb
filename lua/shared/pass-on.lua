-- pass_on: offers a key that is nobody's to the first who waits for it and still has somebody to hear of it.
--
-- An offer is a short lease in the waiter's name, which it confirms by taking it: whoever is frozen, or never hears,
-- keeps the others waiting for no longer than that. The message goes to all of them, because each sets its clock by it:
-- if it went to the one alone and was lost there, the others would sleep on beside a free key.
--
-- Where there are no wake-ups who waits comes by itself, and nothing tells whether it has ended: the offer finds out.
-- Where no offers are made (a time of 0) the queue is no order: it only tells that somebody waits.
--
-- Answers with the entry that has been chosen, `own` without an offer, or nil where nobody waits.

local function pass_on(lease, queue, wake, offer_time, pubsub, own)
  if offer_time == '0' then return nil end
  while true do
    local entry = redis.call('LPOP', queue)
    if entry == false then return nil end
    if entry == own then return own end
    local holder, receiver = string.match(entry, '^(%S+) (%S+)$')
    if is_there(pubsub, wake, receiver) then
      put(lease, holder, offer_time, '')
      wake_up(pubsub, wake, holder .. ' ' .. offer_time)
      return entry
    end
  end
end
