#!/bin/bash
# cars.yaml as a Slurm array: element i does shard i of 64.
#SBATCH --job-name=cars
#SBATCH --array=0-63%16
# An element that is pre-empted, or whose node fails, goes back into the queue. It goes on where it was.
#SBATCH --requeue
# Its lives share a log, which lies where sbatch is called: Slurm makes no folders.
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.log
# Two minutes before the time limit: time to finish what is in flight and to end with code 75.
#SBATCH --signal=USR1@120
#SBATCH --time=12:00:00
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8

# So the division stays as it is when only a few elements are submitted again.
export PHOTON_BATCH_SHARDS=64
# srun does not take the number of CPUs over from sbatch.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then export SRUN_CPUS_PER_TASK="$SLURM_CPUS_PER_TASK"; fi

# By srun, as the USR1 above is for the steps of a job and for nothing else that its script starts.
# --grace: Slurm kills 30 seconds (its KillWait) after it asks.
# --steal in a second life: the first is over, even if it was killed before it could give its shard back.
srun photon-batch run cars.yaml --no-progress --grace 20 ${SLURM_RESTART_COUNT:+--steal}
code=$?
# Asked to stop before its end: this element, and not the whole array, goes back into the queue.
if [ "$code" -eq 75 ]; then scontrol requeue "${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"; fi
exit "$code"
