#include "agent/mpi/rank.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/open_ranks.hpp"
#include "agent/job/record.hpp"
#include "agent/mpi/child.hpp"
#include "agent/mpi/label.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

struct RankVariable {
  const char* torch;
  const char* open_mpi;
  const char* mpich;
};

constexpr std::array<RankVariable, 4> rank_variables{{
    {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"},
    {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"},
    {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"},
    {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"},
}};

// nullptr if it is unset or empty.
const char* find_set(const char* variable) {
  const char* value = ::getenv(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

void set_torch_variables() {
  for (const RankVariable& variable : rank_variables) {
    const char* value = find_set(variable.open_mpi);
    if (value == nullptr) {
      value = find_set(variable.mpich);
    }
    if (value == nullptr || *value == '-' || !parse_number<int>(value)) {
      exit_with_error(
          "mpirun gave this process no rank: OMPI_COMM_WORLD_RANK (or PMI_RANK) and similar variables are "
          "missing");
    }
    ::setenv(variable.torch, value, 1);
  }
}

void set_mpi_variables() {
  if (const char* interface = find_set("REMOTE_MPI_INTERFACE")) {
    ::setenv("OMPI_MCA_btl_tcp_if_include", interface, 1);
  }
  if (find_set("REMOTE_SANDBOX") == nullptr) {
    return;
  }
  // Practice servers share a host name and /dev/shm, so the shared memory of two servers would have the same
  // names there.
  for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory",
                           "OMPI_MCA_osc_sm_backing_directory", "OMPI_MCA_osc_rdma_backing_directory"}) {
    ::setenv(name, ::getenv("REMOTE_JOB_FOLDER"), 1);
  }
  // In Open MPI 5, this component assumes that the ranks of both servers are on one machine, and hangs.
  ::setenv("OMPI_MCA_coll", "^han", 0);
}

void redirect_stream(int stream, const char* file, int flags) {
  const int opened = ::open(file, flags | O_CREAT | O_CLOEXEC, 0600);
  if (opened >= 0) {
    ::dup2(opened, stream);
  }
}

// The shell exits with 128+N if signal N killed the last command.
void read_signal(wire::ProcessEnd& end) {
  if (end.code > 128 && end.code <= 192) {
    end = wire::ProcessEnd::signalled(end.code - 128);
  }
}

// Reads the note that sitecustomize.py writes if a rank raises an exception or calls sys.exit(). It counts
// even if the rank hung afterwards and was killed. Returns false if there is none.
bool read_raised(const std::string& file, wire::JobEnd& end) {
  const std::vector<std::string> words = read_job_words(file);
  const auto ms = words.size() == 2 ? parse_number<long long>(words[0]) : std::nullopt;
  const auto code = words.size() == 2 ? parse_number<int>(words[1]) : std::nullopt;
  if (ms.value_or(-1) < 0 || code.value_or(0) < 1 || *code > 255) {
    return false;
  }
  end.how = wire::ProcessEnd::exited(*code);
  end.at = wire::Moment(*ms);
  return true;
}

void record_failure(const std::string& rank, const wire::JobEnd& end, std::vector<std::string> lines) {
  std::string text = std::to_string(end.at->count()) + "\n";
  for (const std::string& line : lines) {
    text.append(line).append(1, '\n');
  }
  ::mkdir("failures", 0700);
  put_file("failures/rank." + rank, text);
  write_job_file("failures/agent", text::format("{} {}\n", rank, to_end_line(end)), O_APPEND);
}

}  // namespace

int run_mpi_rank(const char* command) {
  set_torch_variables();
  set_mpi_variables();
  const std::string rank = ::getenv("RANK");
  const bool is_alone = ::getenv("LOCAL_WORLD_SIZE") == std::string_view("1");
  const bool is_open_mpi = find_set("OMPI_COMM_WORLD_RANK") != nullptr;
  const std::string open_file = "open.rank." + rank;
  const std::string raised_file = "raised.rank." + rank;
  const std::string errors = is_alone ? "job.err" : "ranks/" + rank + ".err";
  const char* const folder = ::getenv("REMOTE_RANK_FOLDER");
  ::setenv("PWD", folder, 1);
  redirect_stream(STDIN_FILENO, "/dev/null", O_RDONLY);
  redirect_stream(STDOUT_FILENO, "job.out", O_WRONLY | O_APPEND);
  redirect_stream(STDERR_FILENO, "job.err", O_WRONLY | O_APPEND);

  struct stat info {};
  const auto earlier =
      ::lstat(errors.c_str(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;  // in `errors`
  const GroupSignals signals;
  const LabelledOutput output = is_alone ? LabelledOutput() : start_labeller(rank);
  // If mpirun kills this process, the job's guard records the end.
  OpenRank open{::getpid(), earlier, output.labeller};
  write_open_rank(".", rank, open);
  const std::array<const char*, 6> bash{"bash", "--norc", "-c", "--", command, nullptr};
  const std::array<const char*, 5> sh{"sh", "-c", "--", command, nullptr};
  const pid_t child = start_child({.argv = bash.data(),
                                   .fallback = sh.data(),
                                   .folder = folder,
                                   .streams = {-1, output.out, output.err},
                                   .signals = &signals});
  ::close(output.out);
  ::close(output.err);
  wire::JobEnd end{.how = wait_for_child(child), .at = read_wall_clock(), .by = "mpirun"};
  const bool has_failed = !end.how.succeeded();
  const bool has_raised = has_failed && read_raised(raised_file, end);
  if (!has_failed) {
    ::unlink(open_file.c_str());
  }
  ::unlink(raised_file.c_str());
  read_signal(end.how);
  if (has_failed) {
    open.end = end;
    write_open_rank(".", rank, open);
  }
  // The rank's last lines must be written before this job ends, but its background processes can keep the
  // output open.
  for (int tries = 0; tries < 100 && output.labeller > 0 && ::waitpid(output.labeller, nullptr, WNOHANG) == 0;
       ++tries) {
    ::usleep(20'000);
  }
  if (!has_failed) {
    return 0;
  }
  std::vector<std::string> lines = read_last_rank_lines(errors, earlier);
  if (end.how.signal == SIGTERM) {
    lines.push_back(explain_signal_of_mpirun(SIGTERM));
  } else if (end.how.code == 14 && is_open_mpi && !has_raised) {
    lines.emplace_back("remote: exited with 14, as ranks of Open MPI 5 do when another one has failed");
  }
  record_failure(rank, end, std::move(lines));
  ::unlink(open_file.c_str());
  if (!is_open_mpi) {
    // MPICH's mpirun ignores the exit status of processes other than MPI programs, but not a signal.
    std::signal(SIGTERM, SIG_DFL);
    ::raise(SIGTERM);
  }
  return to_exit_code(end.how);
}

}  // namespace remote::agent
