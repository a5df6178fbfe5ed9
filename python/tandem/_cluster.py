"""Clusters as TensorFlow describes them: names of jobs and where their tasks are."""

from tensorboard.compat.proto.cluster_pb2 import ClusterDef, JobDef  # noqa: F401


class ClusterSpec:
    """{"worker": ["host:port", …]}, {"worker": {1: "host:port"}}, or a message."""

    def __init__(self, cluster):
        self._tasks = {}
        if isinstance(cluster, ClusterSpec):
            cluster = cluster._tasks
        if isinstance(cluster, ClusterDef):
            cluster = {job.name: dict(job.tasks) for job in cluster.job}
        if not isinstance(cluster, dict):
            raise TypeError("`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a `ClusterDef` protocol buffer")
        for job, tasks in cluster.items():
            if isinstance(tasks, (list, tuple)):
                tasks = dict(enumerate(tasks))
            elif not isinstance(tasks, dict):
                raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")
            for number, address in tasks.items():
                if not isinstance(address, str):
                    raise TypeError(f"Task address {address!r} must be a string.")
                self._tasks.setdefault(job, {})[int(number)] = address

    @property
    def jobs(self):
        return list(self._tasks)

    def _of(self, job_name):
        if job_name not in self._tasks:
            raise ValueError(f"No such job in cluster: {job_name!r}")
        return self._tasks[job_name]

    def num_tasks(self, job_name):
        return len(self._of(job_name))

    def task_indices(self, job_name):
        return sorted(self._of(job_name))

    def task_address(self, job_name, task_index):
        if task_index not in self._of(job_name):
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return self._of(job_name)[task_index]

    def job_tasks(self, job_name):
        tasks = self._of(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)]

    def as_dict(self):
        return {
            job: self.job_tasks(job) if sorted(tasks) == list(range(len(tasks))) else dict(tasks) for job, tasks in self._tasks.items()
        }

    def as_cluster_def(self):
        made = ClusterDef()
        for job in sorted(self._tasks):
            entry = made.job.add(name=job)
            for number, address in sorted(self._tasks[job].items()):
                entry.tasks[number] = address
        return made

    def __bool__(self):
        return bool(self._tasks)

    def __eq__(self, other):
        return isinstance(other, ClusterSpec) and self._tasks == other._tasks

    __hash__ = None

    def __repr__(self):
        return f"ClusterSpec({self.as_dict()!r})"
