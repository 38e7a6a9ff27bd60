#!/bin/sh
# Sends a trickle-up message as BOINC's library does, by a file and a flag in the memory that it shares with the client,
# and waits for an answer.
printf '<variety>hello</variety>\nIs anybody there?\n' > trickle_up.xml
printf '\001<have_new_trickle_up/>\n\000' | dd of=boinc_mmap_file bs=1 seek=6144 conv=notrunc 2>/dev/null
while ! ls trickle_down_* > /dev/null 2>&1; do sleep 1; done
# Long enough for the client to ask twice more: there must be no second one.
sleep 20
cat trickle_down_* > out
ls trickle_down_* | wc -l >> out
echo 0 > boinc_finish_called
