#include "agent/job/stop_record.hpp"

#include <csignal>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"

namespace remote::agent {
namespace {

wire::RecordedProcess to_recorded(const ProcessId& id) {
  return {id.pid, id.start};
}

std::vector<wire::RecordedSurvivor> to_recorded(const Host& host,
                                                const std::vector<wire::Survivor>& survivors) {
  std::vector<wire::RecordedSurvivor> recorded;
  for (const wire::Survivor& survivor : survivors) {
    if (!survivor.pid) {
      recorded.push_back({.name = survivor.name});
    } else if (survivor.holds_gpu_memory) {
      recorded.push_back({.process = wire::RecordedProcess{*survivor.pid, 0}});
    } else if (const auto process = read_process(host, *survivor.pid)) {
      recorded.push_back({.process = to_recorded(process->id), .name = survivor.name});
    }
  }
  return recorded;
}

}  // namespace

wire::StopRequested record_stop(const Host& host, const JobRecord& job, const wire::StopRecord& stop,
                                bool records_end) {
  const pid_t thread = ::gettid();  // one agent may stop a job for two clients
  const auto self = read_process(host, thread);
  wire::StopRequested request{stop, self ? to_recorded(self->id) : wire::RecordedProcess{thread, 0},
                              records_end};
  append_safely(host, job.folder, job.id, request);
  return request;
}

void finish_stop(const Host& host, const JobRecord& job, const wire::StopRequested* request,
                 bool had_no_effect, const std::vector<wire::Survivor>& survivors) {
  const bool had_survivors = !read_history(host, job.folder, job.id).survivors.empty();
  const bool is_needed = request != nullptr && (request->records_end || had_no_effect);
  if (!is_needed && survivors.empty() && !had_survivors) {
    return;
  }
  wire::StopFinished entry;
  entry.requested_at = read_wall_clock();
  entry.survivors = to_recorded(host, survivors);
  if (request != nullptr) {
    entry.requested_at = request->stop.at;
    entry.stopper = request->stopper;
    entry.had_no_effect = had_no_effect;
  }
  const KeptJournalTime time(job.folder);
  append_safely(host, job.folder, job.id, entry);
}

void end_attempts(const JobRecord& job) {
  // Open the FIFO for reading as well, because write-only opening fails without a reader.
  const Descriptor next(::open((job.folder / ".next").c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (next && ::fstat(next.get(), &info) == 0 && S_ISFIFO(info.st_mode)) {
    write_whole(next.get(), "end\n");
  }
}

void wake_lifeline(const Host& host, const JobRecord& job) {
  const auto lifeline = parse_process_id(read_job_words(job.folder / "lifeline.pid"));
  const auto process = lifeline && lifeline->pid > 1 ? read_process(host, lifeline->pid) : std::nullopt;
  if (process && process->id == *lifeline && process->state == 'T') {
    send_signal(host, process->id, SIGCONT);
  }
}

}  // namespace remote::agent
