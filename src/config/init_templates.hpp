#pragma once

#include <string_view>

// The fixed parts of the files that `remote init` writes.

namespace remote::config {

inline constexpr std::string_view config_head =
    R"(# How `remote` reaches the servers of this project. More keys are below.
)";

inline constexpr std::string_view config_server_example = R"(servers:
  # first-server:
  #   hostname: 3.19.32.53         # an address, a name, or an alias from ~/.ssh/config
  #   username: ubuntu
  #   private_key: ./.remote/key   # relative to the project; default: the agent, then the keys in ~/.ssh
)";

inline constexpr std::string_view config_tail = R"(
# More keys of a server:
#   password: ...                # better: password_env: NAME, or password_command: COMMAND
#   port: 22
#   proxy_jump: user@bastion     # [USER@]HOST[:PORT], several with commas
#   internal_address: 10.0.0.4   # what the other servers reach it by; default: hostname
#   gpus: 8                      # how many GPUs it is expected to have, or which its jobs may use: [2, 3]
#   env: {NCCL_DEBUG: WARN}      # variables of its commands and jobs
#   known_hosts: FILE            # that holds its host key; default: ~/.ssh/known_hosts
#   remote_path: ~/elsewhere     # the project's folder on the server; default: ~/NAME
#   agent: /scratch/me/remote    # the only folder for remote-agent; default: ~/.cache/remote
#   prologue: module load cuda   # in place of the one for all servers, see below

# sh text that runs before every command and job
# prologue: module load anaconda3

# What jobs run in.
# container:
#   engine: podman               # docker, podman or apptainer; default: what is there
#   image: docker.io/pytorch/pytorch:2.4.0-cuda12.4-cudnn9-runtime
#   args: [-v, "/data:/data"]    # options of the engine's `run`
#   workdir: experiments         # default: the project's folder
#   pull: missing                # always or never

# The Python environment on the servers.
# python:
#   manager: conda               # conda, venv, uv or system
#   version: "3.11"
#   system_site_packages: false  # venv: see the packages that the server has
#   conda: /opt/conda            # an installation on the servers; default: Miniconda in the home
#   environment: my_env          # conda: default NAME_env; venv and uv: the folder, default .venv
#   index_url: https://pypi.org/simple
#   extra_index_urls: []
#   find_links: []
#   constraints: []
#   no_index: false
#   miniconda_url: https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-{arch}.sh
#   miniconda_sha256: {}         # {x86_64: DIGEST, aarch64: DIGEST}

# What launches do unless their command line says otherwise.
launch:
  rsync: true                    # copy what changed here first
#   frozen: true                 # run in a copy of the code that later syncs do not change
#   cmd: train.py
#   nproc_per_node: auto
#   env: {NCCL_DEBUG: WARN}
#   servers: [first-server]
#   launcher: ranks
#   rdzv: static                 # torchrun: or c10d
#   nnodes: "1:2"                # torchrun: how many servers it needs, and has
#   max_restarts: 3              # torchrun
#   init_method: env             # or tcp, file: sets INIT_METHOD
#   init_dir: /mnt/common        # for file: a folder that all servers share
#   on_failure: kill             # or leave
#   hang_after: 30               # minutes without output and work after which it stands still
#   on_hang: leave               # then: leave, kill or restart
#   check: false                 # do not check the servers first
#   follow: true
#   pull: true                   # copy the outputs here when following ends

# What launches write, for `remote pull`, and when a checkpoint is complete.
# outputs: [checkpoints/, metrics.csv]
# checkpoint: {files: ckpt-*.pt, complete: ckpt-*.done}
# spares: []                     # names of servers that replace one that is lost, with `restarts`

# Who is told when a launch has ended. The url is a secret.
# notify: {url: https://ntfy.sh/TOPIC, shape: ntfy}  # or json, slack; or {command: COMMAND} on the first server

# Launches by name: the keys of `launch`, which they inherit. `remote torch-launch full` starts one.
# launches: {small: {nproc_per_node: 1}, full: {env: {EPOCHS: 20}, follow: true}}

# Packages of the servers' distribution, installed with `sudo -n`.
# system_packages: [git]

# host_keys: accept-new          # or strict: a server whose key is not known is refused
# connect_timeout: 10            # seconds
# connection: auto               # or libssh, openssh: what logs in (`remote help logging-in`)
# remote_path: ~/elsewhere       # for all servers

# scripts_folder: .remote/scripts
# logs_folder: .remote/logs
# jobs_folder: .remote/jobs
# exclude_file: .remote/exclude.txt
# remote_scripts_folder_name: .remote-scripts
# remote_jobs_folder_name: .jobs
)";

inline constexpr std::string_view exclude_text =
    R"(# What is not sent to the servers: patterns as rsync's --exclude-from takes them.
# NAME matches anywhere, /NAME only at the top of the project, NAME/ only a folder.

# this program's own files
/.remote/
/.remote-scripts/
/.jobs/

# version control
.git
.hg
.svn

# caches and virtual environments of Python
__pycache__/
*.egg-info/
.eggs/
.venv/
venv/
.conda/
.ipynb_checkpoints/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.tox/

# Add here what the servers do not need, such as large results: /runs/

# editors and systems
.idea/
.vscode/
.*.sw[op]
*~
.DS_Store
)";

inline constexpr std::string_view gitignore_text = R"(# written by `remote`, of use on this machine only
/bandwidth.json
/jobs/
/logs/
/reports/
/samples/
/sandbox/
/scripts/
/sent/

# never commit a private key
/key
/key.pub
/private_key
/private_key.pub
*.pem
id_*
)";

}  // namespace remote::config
