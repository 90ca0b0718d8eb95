#include "agent/slurm/slurm_job.hpp"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/facts/ports.hpp"
#include "agent/facts/project.hpp"
#include "agent/host/processes.hpp"
#include "agent/host/remove.hpp"
#include "agent/host/utc_time.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/record.hpp"
#include "agent/job/second_place.hpp"
#include "agent/slurm/job_command.hpp"
#include "agent/slurm/slurm_rank.hpp"
#include "agent/slurm/tools.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int wrong_words = 2;
constexpr int most_end_tries = 60;
constexpr int most_on_node = 1 << 16;

struct SlurmLaunch {
  SlurmRank rank;
  int port = 0;  // 0: a free one
};

class SlurmJob {
 public:
  SlurmJob(const Host& host, Path folder)
      : host_(host), folder_(std::move(folder)), id_(folder_.filename()) {}

  // Returns the exit status. `launch`: nullopt for a single command.
  int run(const std::optional<SlurmLaunch>& launch) {
    if (!become_supervisor()) {
      return 0;
    }
    write_start();
    wire::JobEnd end{
        .how = launch ? run_launch(*launch) : run_job_command(host_, folder_), .at = {}, .by = "slurm"};
    end.at = read_wall_clock();
    record_end(end);
    return end.how.signal != 0 ? 128 + end.how.signal : end.how.code;
  }

 private:
  // Creating the file `supervisor` is the only lock between this and a claim. If Slurm runs the job again
  // (--requeue), the file is the job's own, and the traces of the previous run are removed.
  bool become_supervisor() const {
    if (create_file(folder_ / "supervisor", text::format("slurm {} - -\n", host_.variable("SLURM_JOB_ID")))) {
      return true;
    }
    const std::vector<std::string> words = read_job_words(folder_ / "supervisor");
    const std::string restart = host_.variable("SLURM_RESTART_COUNT");
    if (words.empty()) {
      print_error("cannot write in the job's folder: is the disk full?");
    }
    if (words.empty() || words[0] == "claimed" || restart.empty() || restart == "0") {
      return false;
    }
    restore_journal(host_, folder_, id_);  // before the new entries
    append_to_journal(folder_, wire::JobRestarted{read_wall_clock()});
    ::unlink((folder_ / "slurm.end").c_str());
    remove_folder(folder_, "ranks", "");
    remove_folder(folder_, "failures", "");
    remove_second_journal(host_, id_);
    // `remote report` reads this line.
    print_error(text::format("Slurm begins this job anew (restart {}) at {}", restart,
                             format_utc_time(read_wall_clock())));
    return true;
  }

  void write_start() const {
    const std::string array = host_.variable("SLURM_ARRAY_TASK_ID");
    const auto number = look_at(folder_ / "slurm");
    if (!number || number->st_size == 0) {
      put_file(folder_ / "slurm", (array.empty() ? host_.variable("SLURM_JOB_ID")
                                                 : host_.variable("SLURM_ARRAY_JOB_ID") + "_" + array) +
                                      "\n");
    }
    put_file(folder_ / "nodes", host_.variable("SLURM_JOB_NODELIST") + "\n");
    append_to_journal(folder_, wire::JobStarted{read_wall_clock()});
  }

  // Returns the address of the first node, or its name if Slurm has no address.
  std::string find_first_node() const {
    constexpr std::chrono::seconds limit{60};
    SlurmTools tools(host_);
    tools.find();
    const std::string names =
        tools.call({"scontrol", "show", "hostnames", host_.variable("SLURM_JOB_NODELIST")}, limit).out;
    std::string first(trim(names.substr(0, names.find('\n'))));
    if (first.empty()) {
      first = host_.variable("SLURMD_NODENAME");  // the batch script runs there
    }
    for (const std::string& word :
         split_words(tools.call({"scontrol", "show", "node", "-o", first}, limit).out)) {
      if (word.starts_with("NodeAddr=") && word.size() > 9) {
        return word.substr(9);
      }
    }
    return first;
  }

  // Starts all processes with a single srun, which stops the others after the first failure.
  wire::ProcessEnd run_launch(const SlurmLaunch& launch) const {
    const SlurmRank& rank = launch.rank;
    ::mkdir((folder_ / "ranks").c_str(), 0700);
    ::mkdir((folder_ / "failures").c_str(), 0700);
    const int port = launch.port != 0 ? launch.port : look_at_port(host_, 0).suggested.value_or(0);
    ::setenv("MASTER_ADDR", find_first_node().c_str(), 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    const std::string nodes = host_.variable("SLURM_JOB_NUM_NODES");
    const int tasks = rank.is_agent ? 1 : rank.count;
    std::vector<std::string> argv{
        "srun", "--nodes=" + nodes,
        text::format("--ntasks={}", parse_number<long long>(nodes).value_or(1) * tasks),
        text::format("--ntasks-per-node={}", tasks)};
    if (const std::string cpus = host_.variable("SLURM_CPUS_PER_TASK"); !cpus.empty()) {
      argv.push_back("--cpus-per-task=" + cpus);
    }
    const std::string count = std::to_string(rank.count);
    for (const std::string& word :
         {std::string("--mpi=none"),
          std::string(rank.grace ? "--kill-on-bad-exit=1" : "--kill-on-bad-exit=0"), std::string("sh"),
          std::string("./batch.sh"), std::string("rank"), std::string(rank.is_agent ? "agents" : "ranks"),
          count, rank.grace ? std::to_string(*rank.grace) : std::string("-")}) {
      argv.push_back(word);
    }
    return judge_launch(run_in_foreground(host_, std::move(argv)));
  }

  // Determines how the launch ended, from the exit status of srun and the records of its processes.
  wire::ProcessEnd judge_launch(wire::ProcessEnd end) const {
    if (end.signal == 0 && end.code > 128 && end.code <= 192) {
      end = wire::ProcessEnd::signalled(end.code - 128);  // from the signal that ended a process
    }
    const int signal = find_end_signal();
    if (signal != 0) {
      // srun then stops the processes in its own way, which its exit status reflects.
      end = wire::ProcessEnd::signalled(signal);
    }
    const std::set<std::string> failures = list_ends("failures");
    if (!failures.empty()) {
      std::string text;
      for (const std::string& line : failures) {
        text += line.substr(line.find(' ') + 1) + "\n";
      }
      put_file(folder_ / "failures/agent", text);
      const std::string& first = *failures.begin();
      return parse_end(first.substr(first.find(' ', first.find(' ') + 1) + 1))->end.how;
    }
    // srun returns the highest exit code, which may be that of an agent that it killed afterwards.
    const std::set<std::string> agents = list_ends("ranks");
    if (signal == 0 && !end.succeeded() && !agents.empty()) {
      const std::string& first = *agents.begin();
      return parse_end(first.substr(first.find(' ') + 1))->end.how;
    }
    return end;
  }

  // The failures recorded in `failures/end.N` ("N KIND CODE MS BY") or `ranks/N.end` ("KIND CODE MS BY"),
  // each preceded by its time, which sorts them.
  std::set<std::string> list_ends(std::string_view name) const {
    const bool is_numbered = name == "failures";
    std::set<std::string> ends;
    for (const std::string& file : list_names(folder_ / name)) {
      if (!(is_numbered ? file.starts_with("end.") : file.ends_with(".end"))) {
        continue;
      }
      const std::string line = read_job_line(folder_ / name / file).value_or("");
      const auto end = parse_end(is_numbered ? line.substr(line.find(' ') + 1) : line);
      if (end && !end->never_started && !end->end.how.succeeded() && end->end.at) {
        ends.insert(text::format("{} {}", end->end.at->count(), line));
      }
    }
    return ends;
  }

  void record_end(const wire::JobEnd& end) const {
    const FolderFlaw flaw = end.how.succeeded() ? FolderFlaw::none : find_full_disk(folder_);
    if (flaw != FolderFlaw::none) {
      append_safely(host_, folder_, id_, wire::DiskRefused{read_wall_clock(), flaw});
    }
    for (int tries = 0; tries < most_end_tries && exists(folder_ / spec_name); ++tries) {
      if (append_safely(host_, folder_, id_, wire::JobEnded{end})) {
        return;
      }
      ::sleep(1);
    }
  }

  const Host& host_;
  Path folder_;
  std::string id_;
};

std::optional<SlurmRank> parse_slurm_rank(std::string_view kind, std::string_view count,
                                          std::string_view grace) {
  SlurmRank rank{.is_agent = kind == "agents", .count = parse_number<int>(count).value_or(0)};
  const auto seconds = parse_number<int>(grace);
  const bool is_grace = grace == "-" || (seconds && *seconds >= 0 && *seconds <= 1'000'000);
  if ((kind != "agents" && kind != "ranks") || rank.count < 1 || rank.count > most_on_node || !is_grace) {
    return std::nullopt;
  }
  rank.grace = seconds;
  return rank;
}

std::string find_working_folder() {
  std::string folder(4096, '\0');
  const char* const found = ::getcwd(folder.data(), folder.size());
  return found == nullptr ? "" : found;
}

// Slurm writes no output files for the jobs of an array.
bool open_own_output() {
  const int out = ::open("job.out", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const int err = ::open("job.err", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  return out >= 0 && err >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 && ::dup2(err, STDERR_FILENO) >= 0;
}

}  // namespace

int run_slurm_job(int count, char** words) {
  const std::vector<std::string_view> all(words, words + count);
  const bool is_one = count == 1 && all[0] == "one";
  const bool is_rank = count == 4 && all[0] == "rank";
  std::optional<SlurmLaunch> launch;
  if (is_rank || count == 4) {
    const auto rank =
        is_rank ? parse_slurm_rank(all[1], all[2], all[3]) : parse_slurm_rank(all[0], all[1], all[3]);
    const auto port = is_rank ? 0 : parse_number<int>(all[2]);
    if (rank && port && *port >= 0 && *port <= 65535) {
      launch = SlurmLaunch{*rank, *port};
    }
  }
  if (!is_one && !launch) {
    return wrong_words;
  }
  survive_signals();
  const Host host = Host::of_this_process();
  const Path folder = find_working_folder();
  if (is_one && !host.variable("SLURM_ARRAY_TASK_ID").empty()) {
    open_own_output();
  }
  if (!wire::is_id(folder.filename())) {
    print_error("the working directory is not the folder of a job");
    return 127;
  }
  ::setenv("REMOTE_JOB_ID", folder.filename().c_str(), 1);
  return is_rank ? run_slurm_rank(host, folder, launch->rank) : SlurmJob(host, folder).run(launch);
}

}  // namespace remote::agent
