// Hints for commands of other tools. Each suggested line can be typed and means the same as the typed
// command.

#include "cli/other_tools.hpp"

#include <algorithm>
#include <regex>

#include <gtest/gtest.h>

#include "base/command.hpp"
#include "cli/commands.hpp"
#include "cli/line_meaning.hpp"
#include "cli/parser.hpp"

namespace remote::cli {
namespace {

struct TypedLine {
  const char* typed;
  const char* hint;  // in a project with the servers a and b
};

constexpr TypedLine typed_lines[] = {
    // jobs
    {"ps", "use `remote job-list`"},
    {"ps -a", "use `remote job-list -a`"},
    {"ps aux", "use `remote run -- ps aux`"},
    {"ls -l", "use `remote run -- ls -l`"},
    {"squeue -u me", "use `remote job-list --help`"},
    {"sacct -j 1", "use `remote job-list --help`"},
    {"jobs queue", "use `remote job-list`"},
    {"jobs launch task.yaml", "use `remote job-run --help`"},
    {"jobs cancel 1", "use `remote job-kill 1`"},
    {"job list", "use `remote job-list`"},
    {"job run train.py", "use `remote job-run --server a -- python train.py`"},
    {"job tail 1", "use `remote job-tail 1`"},
    {"logs 1 -f", "use `remote job-tail 1 -f`"},
    {"logs -f", "use `remote job-tail -f`"},
    {"logs job/1", "use `remote job-tail 1`"},
    {"logs a", "a job is named by its key, which `remote job-list` shows; use `remote job-tail --help`"},
    {"fg 1", "use `remote job-tail 1`"},
    {"stop 1", "use `remote job-kill 1`"},
    {"stop --all", "use `remote job-kill --all`"},
    {"stop a", "a job is named by its key, which `remote job-list` shows; use `remote job-kill --help`"},
    {"down", "use `remote job-kill`"},
    {"kill -9 1", "use `remote job-kill -9 1`"},
    {"cancel", "use `remote job-kill`"},
    {"cancel CLUSTER 1", "use `remote job-kill --help`"},
    {"describe 1", "use `remote show 1`"},
    {"describe job 1", "use `remote show 1`"},
    {"describe node a", "use `remote servers --verbose --server a`"},
    {"scontrol show job 1", "use `remote show 1`"},
    {"scontrol update x", "use `remote show --help`"},
    {"why 1", "use `remote job-why 1`"},
    {"why", "use `remote job-why`"},
    {"delete 1", "use `remote job-clean 1`"},
    {"restart 1", "use `remote rerun 1`"},
    {"restart", "use `remote rerun last`"},
    {"restart a", "a job is named by its key, which `remote job-list` shows; use `remote rerun --help`"},
    {"get 3 out.txt", "use `remote job-pull 3 out.txt`"},
    {"get pods", "use `remote job-list`"},
    {"get jobs 1", "use `remote job-list 1`"},
    {"get nodes", "use `remote servers`"},
    {"get out.txt", "use `remote job-pull --help`"},
    {"scp a:out.txt .",
     "`remote job-pull KEY PATH --to DIR` copies a job's files here, `remote rsync` the project to the "
     "servers"},
    // servers
    {"a", "use `remote shell a`"},
    {"a ls", "use `remote run --server a -- ls`"},
    {"root@a -- ls -l", "use `remote run --server a -- ls -l`"},
    {"ssh a", "use `remote shell a`"},
    {"ssh root@a", "use `remote shell a`"},
    {"ssh -t a nvidia-smi", "use `remote run --server a -- nvidia-smi`"},
    {"ssh -p 22 root@b", "use `remote shell b`"},
    {"ssh -L 8000:localhost:8000 a", "use `remote forward a 8000:localhost:8000`"},
    {"ssh c", "use `remote shell --help`"},
    {"ssh", "use `remote shell --help`"},
    {"sh train.sh", "use `remote run -- sh train.sh`"},
    {"exec a -- ls", "use `remote run --server a -- ls`"},
    {"exec -it a bash", "use `remote shell a`"},
    {"exec -it a htop", "use `remote run --tty --server a -- htop`"},
    {"python -m pip install numpy", "add numpy to requirements.txt, then run `remote update-packages`"},
    {"python -m venv env", "use `remote run -- python -m venv env`"},
    {"pip install --index-url https://x torch",
     "add torch to requirements.txt, then run `remote update-packages`"},
    {"torchrun --nnodes=1 train.py", "use `remote torch-launch --server a -- train.py`"},
    {"exec a", "use `remote shell a`"},
    {"exec hostname", "use `remote run hostname`"},
    {"exec c -- ls", "use `remote run --help`"},
    {"exec CLUSTER task.yaml", "use `remote run --help`"},
    {"exec -d ls", "use `remote run --help`: `remote job-run` starts what outlives the connection"},
    {"ping a", "use `remote check --server a`"},
    {"ping a root@b", "use `remote check --server a,b`"},
    {"gpus", "use `remote servers`"},
    {"nvidia-smi", "use `remote servers`"},
    {"nvidia-smi -L", "use `remote run -- nvidia-smi -L`"},
    {"watch a", "use `remote top --server a`"},
    {"sync", "use `remote rsync`"},
    {"push a", "use `remote rsync --server a`"},
    {"push train.py", "use `remote rsync --help`"},
    {"sync --watch", "use `remote rsync --help`"},
    {"up", "use `remote prepare`"},
    {"install numpy", "add numpy to requirements.txt, then run `remote update-packages`"},
    {"pip install numpy torch==2",
     "add numpy, torch==2 to requirements.txt, then run `remote update-packages`"},
    {"pip install -r requirements.txt", "use `remote update-packages`"},
    {"pip list", "use `remote run -- pip list`"},
    {"port-forward a 8080:80", "use `remote forward a 8080:80`"},
    {"port-forward pod/x 8080:80", "use `remote forward --help`"},
    // programs
    {"start a", "use `remote job-run --help`"},
    {"start --cmd ls", "use `remote job-run --server a --cmd ls`"},
    {"sbatch job.sh", "use `remote job-run --server a -- bash job.sh`"},
    {"submit --server b x", "use `remote job-run --server b -- x`"},
    {"nohup python train.py &", "use `remote job-run --server a -- python train.py`"},
    {"bg 1", "use `remote job-run --help`"},
    {"torchrun --nproc-per-node 8 train.py --lr 1",
     "use `remote torch-launch --nproc-per-node 8 -- train.py --lr 1`"},
    {"torchrun --nnodes=2 --rdzv-backend=c10d --rdzv_endpoint=h:1 --nproc_per_node=2 train.py",
     "use `remote torch-launch --nproc_per_node=2 -- train.py`"},
    {"torchrun --nnodes 2 --node_rank 0 --master_addr h --master_port 29500 train.py",
     "use `remote torch-launch --master_port 29500 -- train.py`"},
    {"torchrun --nnodes=1:2 --max-restarts=3 train.py",
     "use `remote torch-launch --launcher torchrun --nnodes=1:2 --max-restarts=3 -- train.py`"},
    {"torchrun --standalone train.py", "use `remote torch-launch --server a -- train.py`"},
    {"torchrun -m pkg.train --lr 1", "use `remote torch-launch -- -m pkg.train --lr 1`"},
    {"torchrun --no-python ./a.out", "use `remote launch -- ./a.out`"},
    {"accelerate launch train.py", "use `remote torch-launch -- train.py`"},
    {"accelerate launch --num_processes 4 train.py",
     "use `remote torch-launch --help`: --nproc-per-node N says how many ranks each server gets; remote sets "
     "the rest"},
    {"accelerate config", "use `remote torch-launch --help`"},
    {"deepspeed --num_gpus 2 train.py", "use `remote torch-launch --nproc-per-node 2 -- train.py`"},
    {"train", "use `remote torch-launch --help`"},
    {"apply -f task.yaml", "use `remote torch-launch --help`"},
    {"srun hostname", "use `remote launch -- hostname`"},
    {"srun python train.py", "use `remote torch-launch -- python train.py`"},
    {"srun -n 2 hostname",
     "use `remote launch --help`: --nproc-per-node N says how many ranks each server gets; -H a:2,b:4 says "
     "it "
     "for each server"},
    {"mpirun ./a.out", "use `remote launch -- ./a.out`"},
    {"mpirun -H a:2 ./a.out", "use `remote launch -H a:2 -- ./a.out`"},
    {"python x.py --lr 1", "use `remote torch-launch -- python x.py --lr 1`"},
    {"python -m pkg", "use `remote torch-launch -- python -m pkg`"},
    {"python --version", "use `remote run -- python --version`"},
    {"./x.py", "use `remote torch-launch -- ./x.py`"},
    {"train.py", "use `remote torch-launch -- train.py`"},
    {"./a.out 1", "use `remote launch -- ./a.out 1`"},
    {"train.sh", "use `remote launch -- bash train.sh`"},
    // suites
    {"docker ps -a", "use `remote job-list -a`"},
    {"docker exec -it a ls", "use `remote run --tty --server a -- ls`"},
    {"docker exec web ls", "use `remote run --help`"},
    {"docker run --rm image ls", "use `remote job-run --help`"},
    {"docker logs 1", "use `remote job-tail 1`"},
    {"docker build .", "`remote --help` lists the commands"},
    {"docker", "`remote --help` lists the commands"},
    {"kubectl get pods", "use `remote job-list`"},
    {"kubectl logs pod/3", "use `remote job-tail 3`"},
    {"kubectl port-forward a 80:80", "use `remote forward a 80:80`"},
    {"sky status", "use `remote status`"},
    {"sky jobs queue", "use `remote job-list`"},
    {"sky launch -c c task.yaml",
     "use `remote launch --help`: --nproc-per-node N says how many ranks each server gets; --server NAME "
     "names "
     "the servers"},
    {"sky exec c ls", "use `remote run --help`"},
    // no equivalent
    {"salloc", "`remote shell SERVER --allocate OPTIONS` opens a shell on a node of Slurm"},
    {"config", "`remote servers --verbose` shows the settings, `remote help configs` what they mean"},
    {"version", "use `remote --version`"},
    {"job-lits", ""},
};

const std::vector<std::string> two_servers = {"a", "b"};

std::string hint_for(const std::string& typed, const std::vector<std::string>& servers = two_servers) {
  return hint_for_other_tool(shell_words(typed), servers);
}

struct OfferedLine {
  std::vector<std::string> words;  // after "remote"
  bool is_offered = false;         // as a line to type; otherwise only the command is named
};

std::vector<OfferedLine> offered_lines(const std::string& hint) {
  static const std::regex quoted("(use |then run )?`remote ([^`]*)`");
  std::vector<OfferedLine> lines;
  for (std::sregex_iterator one(hint.begin(), hint.end(), quoted), end; one != end; ++one) {
    lines.push_back({shell_words((*one)[2].str()), (*one)[1].matched});
  }
  return lines;
}

bool is_placeholder(const std::string& word) {
  return word.size() > 1 && word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
}

// Empty if the line can be typed in a project with these servers; otherwise the problem.
std::string find_fault(const OfferedLine& offered, const std::vector<std::string>& servers) {
  const std::vector<std::string>& line = offered.words;
  if (!offered.is_offered && find_command(line.front()) != nullptr) {
    return "";
  }
  if (line.back() == "--help" || line.front() == "help") {
    return line.size() == 1 || line.front() == "help" || find_command(line.front()) != nullptr ? ""
                                                                                               : "no command";
  }
  if (line.front() == "--version" || std::ranges::any_of(line, is_placeholder)) {
    return "";
  }
  const ParsedLine parsed = parse_line(line);
  if (!parsed.is_accepted) {
    return "the parser refuses it";
  }
  for (const char* option : {"--server", "server"}) {
    const auto found = parsed.values.find(option);
    for (const std::string& value :
         found == parsed.values.end() ? std::vector<std::string>() : found->second) {
      for (const char name : value) {
        if (name != ',' && std::ranges::find(servers, std::string(1, name)) == servers.end()) {
          return "no server " + value;
        }
      }
    }
  }
  for (const char* option : {"keys", "launch", "--job", "--launch"}) {
    const auto found = parsed.values.find(option);
    for (const std::string& key : found == parsed.values.end() ? std::vector<std::string>() : found->second) {
      if (key != "last" && key.find_first_not_of("0123456789-") != std::string::npos) {
        return "no key " + key;
      }
    }
  }
  const bool starts = parsed.command == "run" || parsed.command == "job-run" || parsed.command == "launch" ||
                      parsed.command == "torch-launch";
  if (starts && !parsed.program && !parsed.has("--cmd")) {
    return "no program";
  }
  if (parsed.command == "job-run" && servers.size() > 1 && !parsed.has("--server")) {
    return "no server for a job";
  }
  if (parsed.command == "shell" && servers.size() > 1 && !parsed.has("server")) {
    return "no server for a shell";
  }
  return "";
}

TEST(OtherTools, EachTypedLineHasItsHint) {
  for (const auto& [typed, hint] : typed_lines) {
    EXPECT_EQ(hint_for(typed), hint) << typed;
  }
}

TEST(OtherTools, EachOfferedLineCanBeTyped) {
  for (const std::vector<std::string>& servers : {two_servers, std::vector<std::string>{"a"}, {}}) {
    for (const auto& [typed, hint] : typed_lines) {
      for (const OfferedLine& line : offered_lines(hint_for(typed, servers))) {
        EXPECT_EQ(find_fault(line, servers), "")
            << typed << " with " << servers.size() << " servers: " << hint_for(typed, servers);
      }
    }
  }
}

// Every word in the tables, with typical arguments.
TEST(OtherTools, EachWordIsAnsweredWithALineThatCanBeTyped) {
  const char* words[] = {
      "ps",      "ls",       "list",       "jobs",      "queue",     "squeue",       "sacct",
      "logs",    "log",      "tail",       "follow",    "cat",       "fg",           "kill",
      "stop",    "cancel",   "scancel",    "terminate", "abort",     "down",         "killall",
      "pkill",   "describe", "inspect",    "seff",      "scontrol",  "wait",         "stacks",
      "py-spy",  "why",      "rm",         "clean",     "prune",     "delete",       "restart",
      "resume",  "retry",    "ssh",        "sh",        "bash",      "connect",      "exec",
      "cmd",     "do",       "start",      "submit",    "sbatch",    "bg",           "nohup",
      "train",   "torchrun", "accelerate", "deepspeed", "lightning", "fabric",       "fit",
      "srun",    "mpirun",   "mpiexec",    "apply",     "create",    "cp",           "scp",
      "get",     "download", "fetch",      "push",      "sync",      "send",         "upload",
      "install", "pip",      "provision",  "deploy",    "up",        "doctor",       "ping",
      "test",    "diagnose", "hosts",      "nodes",     "info",      "sinfo",        "nvidia-smi",
      "gpus",    "watch",    "htop",       "monitor",   "stats",     "port-forward", "tunnel",
      "docker",  "podman",   "kubectl",    "sky",       "job",       "python",       "a",
      "root@b",  "./x"};
  const char* rests[] = {"",        "1",          "a ls",      "root@a -- ls", "train.py",        "-f 1",
                         "-n 2 x",  "--server b", "task.yaml", "CLUSTER 1",    "launch train.py", "job 1",
                         "pod/1 x", "\"\""};
  for (const std::vector<std::string>& servers : {two_servers, std::vector<std::string>{"a"}}) {
    for (const char* word : words) {
      for (const char* rest : rests) {
        const std::string typed = std::string(word) + " " + rest;
        const std::string hint = hint_for(typed, servers);
        EXPECT_TRUE(!hint.empty() || servers.size() == 1) << typed;
        for (const OfferedLine& line : offered_lines(hint)) {
          EXPECT_EQ(find_fault(line, servers), "") << typed << ": " << hint;
        }
      }
    }
  }
}

TEST(OtherTools, WithOneServerNoneNeedsToBeNamed) {
  EXPECT_EQ(hint_for("sbatch job.sh", {"a"}), "use `remote job-run -- bash job.sh`");
  EXPECT_EQ(hint_for("ssh", {"a"}), "use `remote shell`");
  EXPECT_EQ(hint_for("torchrun --standalone train.py", {"a"}), "use `remote torch-launch -- train.py`");
}

TEST(OtherTools, OptionsBeforeTheWordAreKept) {
  EXPECT_EQ(hint_for_other_tool({"logs", "1"}, {}, {"--project", "x y"}),
            "use `remote --project 'x y' job-tail 1`");
}

TEST(OtherTools, AKeyIsANumberOrTheStartOfAnId) {
  for (const char* key : {"1", "45-48", "last", "3fa9c0"}) {
    EXPECT_TRUE(is_job_key(key)) << key;
  }
  for (const char* other : {"", "a", "node-1", "1-b", "facade", "out.txt", "-1", "1-"}) {
    EXPECT_FALSE(is_job_key(other)) << other;
  }
}

}  // namespace
}  // namespace remote::cli
