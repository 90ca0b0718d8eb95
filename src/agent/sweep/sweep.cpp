#include "agent/sweep/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/host/remove.hpp"
#include "agent/host/run.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/kept_program.hpp"
#include "agent/job/output_end.hpp"
#include "agent/sweep/sweep_supervisor.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::seconds begin_limit{30};
constexpr std::chrono::seconds end_limit{10};
constexpr std::size_t most_points_in_reply = 1000;
constexpr std::size_t most_tail_bytes = 8192;  // from each output
constexpr std::size_t most_tail_lines = 200;
constexpr std::size_t longest_tail_line = 400;
constexpr std::size_t most_tail_output = std::size_t{32}
                                         << 20U;  // in bytes; a client requests the rest later
constexpr std::size_t longest_begin_report = 1000;

[[noreturn]] void refuse_write(const SweepFolder& folder) {
  throw std::runtime_error("cannot write in " + folder.path().string() + ": is the disk full?");
}

// Kills the supervisor. A point that it is just starting counts as started.
void stop_sweep(const Host& host, const SweepFolder& folder) {
  if (!put_synced_file(folder.file("stopped"), "\n")) {
    refuse_write(folder);
  }
  const std::optional<ProcessId> supervisor = folder.find_supervisor(host);
  if (!supervisor) {
    return;
  }
  send_signal(host, *supervisor, SIGKILL);
  const auto end = read_boot_clock() + end_limit;
  while (is_alive(host, *supervisor)) {
    if (read_boot_clock() > end) {
      throw std::runtime_error(
          text::format("the process that runs its points here, pid {}, does not end", supervisor->pid));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Returns the last lines of a point's output that contain digits.
std::vector<std::string> read_point_tail(const Path& job) {
  std::vector<std::string> lines;
  for (const char* name : {"job.err", "job.out"}) {
    const std::string text = read_end_of_file(job / name, most_tail_bytes, Links::refuse).value_or("");
    for (std::string_view line : find_last_lines(text, most_tail_lines)) {
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      line = line.substr(line.rfind('\r') + 1).substr(0, longest_tail_line);
      if (line.find_first_of("0123456789") != std::string_view::npos) {
        lines.emplace_back(line);
      }
    }
  }
  return lines;
}

Descriptor lock_sweep(const SweepFolder& folder) {
  Descriptor lock(::open(folder.file("lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock) {
    refuse_write(folder);
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    throw std::runtime_error("it runs here already");
  }
  return lock;
}

std::unique_ptr<SweepSupervisor> make_sweep_supervisor(const Host& host, const JobsFolder& jobs,
                                                       const Path& program, const SweepFolder& folder) {
  auto points = folder.read_points();
  auto run = folder.read_run();
  if (!points || !run) {
    throw std::runtime_error("the list of its points no longer exists here");
  }
  SweepMeans means = SweepMeans::of(host, program, *points);
  return std::make_unique<SweepSupervisor>(host, jobs, program, folder, std::move(*points), std::move(*run),
                                           std::move(means));
}

int supervise_sweep(const Host& host, const JobsFolder& jobs, const Path& program,
                    const SweepFolder& folder) {
  Descriptor lock;
  // The memory is not freed, because the process exits, and a thread may hang on a disk.
  SweepSupervisor* supervisor = nullptr;
  try {
    lock = lock_sweep(folder);
    supervisor = make_sweep_supervisor(host, jobs, program, folder).release();
    if (!put_synced_file(folder.file("runner"), make_process_record(host) + "\n")) {
      refuse_write(folder);
    }
  } catch (const std::exception& error) {
    write_whole(STDOUT_FILENO, error.what());
    return 1;
  }
  write_whole(STDOUT_FILENO, "ok");
  ::dup2(STDIN_FILENO, STDOUT_FILENO);
  supervisor->run();
  ::unlink(folder.file("runner").c_str());
  return 0;
}

}  // namespace

wire::BeginSweepReply begin_sweep(const Host& client_host, const wire::SweepToBegin& sweep) {
  const Host host = client_host.without_cancel();
  const JobsFolder jobs = JobsFolder::of(host, sweep.place);
  const KeptProgram kept(host, jobs, sweep.program);
  if (!kept.is_complete() || !is_file(kept.path() / "remote-agent")) {
    throw std::runtime_error("the programs in " + kept.path().string() + " are missing");
  }
  const SweepFolder folder(jobs, sweep.launch);
  folder.make();
  if (folder.find_supervisor(host)) {
    throw std::runtime_error("it runs here already");
  }
  if (!sweep.points && !exists(folder.file("points"))) {
    throw std::runtime_error("the list of its points no longer exists here");
  }
  if ((sweep.points && !folder.write(*sweep.points)) || !folder.write(sweep.run)) {
    refuse_write(folder);
  }
  for (const char* name : {"stopped", "note", "runner"}) {
    ::unlink(folder.file(name).c_str());
  }
  const RunResult started = run(
      host, {.argv = {kept.path() / "remote-agent", "supervise-sweep", jobs.jobs, kept.path(), sweep.launch},
             .program = host.system("/proc/self/exe"),
             .folder = "/",
             .limit = begin_limit,
             .awaits_children = true,
             .is_job = true});  // so that points get its environment
  if (started.out != "ok") {
    throw std::runtime_error(started.out.empty() ? "the process that runs its points ends at once"
                                                 : wire::to_line(started.out, longest_begin_report));
  }
  return {};
}

void answer_sweep(const Host& host, const wire::SweepRequest& request, Stream& stream) {
  const JobsFolder jobs = JobsFolder::of(host, request.place);
  const SweepFolder folder(jobs, request.launch);
  if (request.ask == wire::SweepAsk::drop) {
    if (folder.find_supervisor(host)) {
      throw std::runtime_error("it still runs here");
    }
    remove_folder(folder.path().parent_path(), request.launch, "");
  } else if (request.ask == wire::SweepAsk::stop && is_folder(folder.path())) {
    stop_sweep(host, folder);
  }
  wire::SweepReply reply{.runner = folder.find_state(host),
                         .note = wire::to_line(read_job_line(folder.file("note")).value_or(""), 1000)};
  const SweepDiary::Content content = SweepDiary(folder).read();
  for (const std::string& point : request.waiting) {
    const auto given = content.given.find(point);
    if (content.begun.contains(point)) {
      reply.begun.push_back(point);
    } else if (given != content.given.end()) {
      reply.given.push_back({point, given->second});
    }
    if (reply.begun.size() + reply.given.size() == most_points_in_reply) {
      stream.send(reply);
      reply.begun.clear();
      reply.given.clear();
    }
  }
  stream.send(reply);
  std::size_t sent = 0;
  for (const std::string& point : request.tails) {
    if (stream.is_closed() || sent > most_tail_output) {
      return;
    }
    if (std::vector<std::string> lines = read_point_tail(jobs.jobs / point); !lines.empty()) {
      for (const std::string& line : lines) {
        sent += line.size();
      }
      stream.send(wire::SweepReply{.runner = reply.runner, .tail_of = point, .tail = std::move(lines)});
    }
  }
}

int run_supervise_sweep(int count, char** words) {
  if (count != 3 || words[0][0] != '/' || !wire::is_id(words[2])) {
    return 2;
  }
  const pid_t child = ::fork();
  if (child != 0) {
    return child < 0 ? 1 : 0;
  }
  ::setsid();
  close_descriptors(STDERR_FILENO + 1);
  ::prctl(PR_SET_NAME, sweep_supervisor_name);
  std::signal(SIGPIPE, SIG_IGN);
  ::mallopt(M_ARENA_MAX, 1);  // a heap for each thread would use more memory
  const Host host = Host::of_this_process();
  const JobsFolder jobs{.project = Path(words[0]).parent_path(), .jobs = words[0]};
  return supervise_sweep(host, jobs, words[1], SweepFolder(jobs, words[2]));
}

}  // namespace remote::agent
