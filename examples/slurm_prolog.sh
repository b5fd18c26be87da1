#!/bin/sh
# A task prolog for Slurm (TaskProlog in slurm.conf, or `srun --task-prolog=slurm_prolog.sh`): offers an array to each
# task of a job, without any privilege and without FUSE on the compute nodes. The job asks for it:
#
#   export TILEFS_ARRAY=/data/dem.tdb
#   srun --task-prolog=slurm_prolog.sh \
#       sh -c 'curl -s -H "Authorization: Bearer $TILEFS_TOKEN" "$TILEFS_URL/text/temp.txt" | head'
#
# One server runs per node and job step, on a port that the kernel chooses. It ends with the step, because Slurm ends
# all processes of a step. When a prolog prints `export NAME=VALUE`, Slurm sets this variable for the task.
set -eu

[ -n "${TILEFS_ARRAY:-}" ] || exit 0
folder="${TMPDIR:-/tmp}/tilefs-${SLURM_JOB_ID:-0}.${SLURM_STEP_ID:-0}-$(id -u)"
mkdir -m 700 "$folder" 2>/dev/null || [ -O "$folder" ]

# The first task of a node starts the server, and the others wait for its address.
if mkdir "$folder/started" 2>/dev/null; then
    # Other users of the node must not be able to read the array.
    token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    (umask 077 && printf '%s' "$token" > "$folder/token")
    TILEFS_TOKEN="$token" nohup tilefs serve "$TILEFS_ARRAY" --listen 127.0.0.1:0 \
        > "$folder/address" 2> "$folder/log" < /dev/null &
fi
tries=0
until grep -q 'http://' "$folder/address" 2>/dev/null; do
    tries=$((tries + 1))
    if [ "$tries" -gt 300 ]; then
        echo "print tilefs does not answer: $(tail -n 1 "$folder/log")"
        exit 0
    fi
    sleep 0.1
done
echo "export TILEFS_URL=$(sed -n 's|.*\(http://.*\)/$|\1|p' "$folder/address")"
echo "export TILEFS_TOKEN=$(cat "$folder/token")"
