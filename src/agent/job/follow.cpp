#include "agent/job/follow.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "agent/job/output_begin.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"

namespace remote::agent {
namespace {

// Returns whether each rank of the job has separate output files. With torchrun under Slurm, this requires
// remote's startup file for Python, which users can disable.
bool divides_output(const JobRecord& job) {
  constexpr std::size_t most = std::size_t{4} << 20U;
  const std::string batch = "\n" + read_file(job.folder / "batch.sh", most).value_or("");
  if (batch.find(" || set -- agents ") == std::string::npos) {
    return true;
  }
  const auto spec = read_spec(job.folder);
  return spec && spec->startup_files == wire::StartupFiles::torch_agent;
}

// Creates the output file of a rank that has not started. The rank appends to it later.
bool make_file(const Path& path) {
  ::mkdir(path.parent_path().c_str(), 0700);
  const int fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  return fd >= 0 && ::close(fd) == 0;
}

void check_rank(const JobRecord& job, int rank, const std::array<Path, 2>& files) {
  if (!divides_output(job)) {
    throw CannotFollow(
        text::format("the output of job {} is not divided by ranks, as it was started without remote's "
                     "startup file for Python",
                     job.id));
  }
  for (const Path& path : files) {
    struct stat info {};
    const bool is_there = ::lstat(path.c_str(), &info) == 0;
    if (is_there && !S_ISREG(info.st_mode)) {
      throw CannotFollow(text::format("{} is not a regular file", path.string()));
    }
    if (!is_there && job.has_result()) {
      throw CannotFollow(text::format("rank {} of job {} has not started", rank, job.id));
    }
    if (!is_there && !make_file(path)) {
      throw CannotFollow(text::format("cannot write in {}: is the disk full?", job.folder.string()));
    }
  }
}

}  // namespace

OutputReader::OutputReader(const Host& host, const JobsFolder& folder, const wire::FollowRequest& request)
    : wait_only_(request.wait_only) {
  const auto job = read_record(host, folder, request.id);
  if (!job) {
    const std::string obstacle = find_obstacle(folder, request.id);
    throw CannotFollow(obstacle.empty() ? text::format("the server has no job {}", request.id) : obstacle);
  }
  std::array<Path, 2> paths{job->folder / "job.out", job->folder / "job.err"};
  if (job->never_started() || ::access(paths[0].c_str(), R_OK) != 0 ||
      ::access(paths[1].c_str(), R_OK) != 0) {
    throw CannotFollow(text::format("job {} was never started", request.id));
  }
  if (request.rank) {
    const Path ranks = job->folder / "ranks";
    paths = {ranks / text::format("{}.out", *request.rank), ranks / text::format("{}.err", *request.rank)};
    check_rank(*job, *request.rank, paths);
  }
  const RegularFile out(paths[0]);
  const RegularFile err(paths[1]);
  for (const auto& [file, path] : {std::pair(&out, paths[0]), std::pair(&err, paths[1])}) {
    if (!*file) {
      throw CannotFollow(text::format("{} is not a regular file", path.string()));
    }
  }
  std::pair<std::uint64_t, std::uint64_t> begin(request.out_offset, request.err_offset);
  if (request.since) {
    begin = find_recent(out, err, job->folder / "marks", *request.since);
  } else if (request.lines) {
    begin = {find_last_lines(host, out, *request.lines), find_last_lines(host, err, *request.lines)};
  }
  files_[0] = {paths[0], begin.first, out.size()};
  files_[1] = {paths[1], begin.second, err.size()};
  older_ = is_newer(out.info(), err.info()) ? 1 : 0;
  older_end_ = files_[older_].seen;
  last_ = older_;
  had_ended_ = job->has_result();
  if (!request.follow || had_ended_) {
    is_finishing_ = true;
    files_[0].end = out.size();
    files_[1].end = err.size();
  }
}

wire::FollowBegins OutputReader::begins() const {
  return {read_wall_clock(), files_[0].position, files_[1].position};
}

// Reads up to `end`.
bool OutputReader::read(File& file, wire::Bytes& payload, std::size_t most, std::uint64_t end) {
  if (file.position >= end) {
    return false;
  }
  const RegularFile opened(file.path);
  if (!opened) {
    file.end = file.end ? std::optional(file.position) : std::nullopt;
    return false;
  }
  if (opened.size() < file.seen && opened.size() < file.position) {
    file.position = 0;  // the file was truncated: start over, like tail -f
    file.end = file.end ? std::optional(opened.size()) : std::nullopt;
    end = std::min(end, file.end.value_or(end));
  }
  file.seen = opened.size();
  const std::uint64_t there = std::min(end, opened.size());
  if (there <= file.position) {
    return false;
  }
  payload.resize(1 + std::min<std::uint64_t>(most - 1, there - file.position));
  payload[0] = static_cast<std::uint8_t>(1 + (&file - files_.data()));
  const std::size_t count = opened.read(payload.data() + 1, payload.size() - 1, file.position);
  payload.resize(1 + count);
  file.position += count;
  if (count == 0) {
    file.end = file.end ? std::optional(file.position) : std::nullopt;  // read error
  }
  return count > 0;
}

bool OutputReader::read(wire::Bytes& payload, std::size_t most) {
  if (wait_only_ || most < 2) {
    return false;
  }
  if (File& older = files_[older_]; older.position < older_end_) {
    if (read(older, payload, most, older_end_)) {
      return true;
    }
    older_end_ = 0;  // the file was truncated
  }
  for (int tries = 0; tries < 2; ++tries) {
    last_ = 1 - last_;
    if (File& file = files_[last_]; read(file, payload, most, file.end.value_or(UINT64_MAX))) {
      return true;
    }
  }
  return false;
}

void OutputReader::finish() {
  is_finishing_ = true;
  for (File& file : files_) {
    const RegularFile opened(file.path);
    file.end = opened ? opened.size() : file.position;
  }
}

void OutputReader::resume() {
  is_finishing_ = false;
  files_[0].end.reset();
  files_[1].end.reset();
}

bool OutputReader::is_done() const {
  return is_finishing_ && (wait_only_ || std::ranges::all_of(files_, [](const File& file) {
                             return file.position >= file.end.value_or(UINT64_MAX);
                           }));
}

EndWatch::~EndWatch() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

std::chrono::milliseconds EndWatch::interval() const {
  return std::chrono::milliseconds(fd_ >= 0 ? 1000 : 200);
}

// Returns whether the job's supervisor, which notices the end of the job, is alive.
bool EndWatch::is_supervised(const JobRecord& job) {
  const Host& host = backends_.host();
  if (!job.supervisor || job.supervisor->boot != read_boot_id(host)) {
    return false;
  }
  const ProcessId id = job.supervisor->id;
#ifdef SYS_pidfd_open
  if (fd_ < 0 && is_same_file(host.system("/proc"), "/proc")) {
    fd_ = static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0));
  }
#endif
  const bool lives = is_alive(host, id);
  if (!lives && fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
  return lives;
}

bool EndWatch::has_ended() {
  const Path folder = backends_.folder().jobs / id_;
  if (fd_ >= 0) {
    pollfd slot{fd_, POLLIN, 0};
    if (::poll(&slot, 1, 0) == 0 && !read_own_history(folder).has_ended()) {
      return false;
    }
  }
  auto job = read_record(backends_.host(), backends_.folder(), id_);
  if (!job || job->has_result() || job->is_claimed) {
    return true;
  }
  if (is_supervised(*job)) {
    return false;
  }
  // Read the record again: the supervisor may write the result just before it exits.
  job = read_record(backends_.host(), backends_.folder(), id_);
  if (!job || job->has_result()) {
    return true;
  }
  const wire::JobPhase phase = backends_.find_state(*job, Look::brief).phase;
  return phase == wire::JobPhase::ended || phase == wire::JobPhase::gone ||
         phase == wire::JobPhase::rebooted || phase == wire::JobPhase::none;
}

}  // namespace remote::agent
