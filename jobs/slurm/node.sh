#!/bin/bash
# cars.yaml on one node with several GPUs: a process and a shard for each. Copy it, and change the name and the numbers.
#SBATCH --job-name=cars
#SBATCH --nodes=1
# The number of shards and of GPUs.
#SBATCH --ntasks=4
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=8
#SBATCH --time=12:00:00
# A job that is pre-empted, or whose node fails, goes back into the queue. It goes on where it was.
#SBATCH --requeue
# Its lives share a log, which lies where sbatch is called: Slurm makes no folders.
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
# Two minutes before the time limit: time to finish what is in flight and to end with code 75.
#SBATCH --signal=USR1@120

# srun does not take the number of CPUs over from sbatch.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi

# By srun, which starts the processes and gives each its GPU; and the USR1 above is for what srun started alone.
# --grace: Slurm kills 30 seconds (its KillWait) after it asks.
# --steal in a second life: the first is over, even if it was killed before it could give its shards back.
srun --label photon-batch run cars.yaml --no-progress --grace 20 ${SLURM_RESTART_COUNT:+--steal}
code=$?
# The highest code of all. Asked to stop before the end: back into the queue.
if [ "$code" -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
