"""Replaces torch.distributed.launch, as in labml_remote."""

from typing import List, Mapping, Optional

from remote_launcher import Launch

from .._project import project


def launch(
    python_cmd: str,
    *,
    tags: List[str],
    n_proc_per_node: int,
    use_env: bool = False,
    master_port: Optional[int] = 1234,
    env_vars: Optional[Mapping[str, str]] = None,
) -> Launch:
    """Starts the ranks on all servers; ranks on the same server start together.

    Args:
        python_cmd: the script and its arguments.
        tags: of all jobs; rank 0 is also tagged ``master``.
        n_proc_per_node: ranks per server.
        use_env: do not append ``--local_rank=N``.
        master_port: port of the rendezvous; None: a free one.
        env_vars: variables of all ranks; they override all others.
    """
    words = ["helper-torch-launch", "--nproc-per-node", str(n_proc_per_node), "--no-follow"]
    words += ["--use-env"] if use_env else []
    words += ["--master-port", str(master_port)] if master_port is not None else []
    here = project()
    from remote_launcher._launch import Job
    from remote_launcher._project import _env, _tags

    answer = here.call(*words, *_env(env_vars), *_tags(tags), "--cmd", python_cmd).check()
    return Launch(here, [Job.of(one) for one in answer.named("launched")[0]["jobs"]])
