#include "agent/job/record.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/path.hpp"
#include "agent/host/processes.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/journal.hpp"
#include "base/format.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr int largest_pid = 1 << 30;

bool may_enter(const Path& folder) {
  return ::faccessat(AT_FDCWD, folder.c_str(), X_OK, AT_EACCESS) == 0;
}

// Parses PID START. Jobs of labml_remote have no start time.
std::optional<ProcessId> parse_recorded_process(const std::vector<std::string>& words) {
  if (words.empty()) {
    return std::nullopt;
  }
  const auto pid = parse_number<int>(words[0]);
  if (!pid || *pid < 1 || *pid > largest_pid) {
    return std::nullopt;
  }
  return ProcessId{*pid, words.size() > 1 ? parse_number<std::uint64_t>(words[1]).value_or(0) : 0};
}

Supervisor parse_supervisor(const std::vector<std::string>& words) {
  return {.id = parse_recorded_process(words).value_or(ProcessId()),
          .boot = words.size() > 2 ? words[2] : "",
          .has_session = words.size() > 3 && words[3] != "-"};
}

std::string parse_backend(const Path& file) {
  const std::string name(trim(read_job_line(file).value_or("")));
  if (name.empty()) {
    return "local";
  }
  return name.size() <= 32 && wire::is_word(name, "") ? name : "unknown";
}

// Creates the file and writes the text. Sets `is_created` if the file was created, even if writing fails.
bool write_new_file(const Path& path, std::string_view text, bool& is_created) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  is_created = fd >= 0;
  if (fd < 0) {
    return false;
  }
  const bool is_written = write_whole(fd, text);
  return ::close(fd) == 0 && is_written;  // some file systems report a full disk only here
}

// Writes the text to a new file in the folder of `path`. Returns its path, or "" on failure. Thread-safe.
Path write_beside(const Path& path, std::string_view text) {
  static std::atomic<unsigned> count{0};
  Path temporary =
      path.parent_path() / text::format(".{}.{}.{}", path.filename(), ::getpid(), count.fetch_add(1));
  bool is_created = false;
  bool is_written = write_new_file(temporary, text, is_created);
  if (!is_written && !is_created && errno == EEXIST) {
    ::unlink(temporary.c_str());  // left over from a dead process with the same pid
    is_written = write_new_file(temporary, text, is_created);
  }
  if (is_written) {
    return temporary;
  }
  ::unlink(temporary.c_str());
  return {};
}

// Renames the result of write_beside() to `path`. Returns false on failure.
bool replace_file(const Path& temporary, const Path& path) {
  if (temporary.empty()) {
    return false;
  }
  if (::rename(temporary.c_str(), path.c_str()) == 0) {
    return true;
  }
  ::unlink(temporary.c_str());
  return false;
}

// Creates a folder and its parents.
void make_job_folder(const Path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno == ENOENT && folder.string().size() > 1) {
    make_job_folder(folder.parent_path());
    ::mkdir(folder.c_str(), 0700);
  }
}

}  // namespace

std::optional<ProcessId> parse_process_id(const std::vector<std::string>& words) {
  const auto start = words.size() > 1 ? parse_number<std::uint64_t>(words[1]) : std::nullopt;
  return start ? parse_recorded_process(words) : std::nullopt;
}

std::optional<ProcessRecord> read_process_record(const Path& file) {
  const std::vector<std::string> words = read_job_words(file);
  const auto process = parse_process_id(words);
  return process ? std::optional(ProcessRecord{*process, words.size() > 2 ? words[2] : ""}) : std::nullopt;
}

std::string make_process_record(const Host& host) {
  const auto self = read_process(host, ::getpid());
  return text::format("{} {} {}", ::getpid(), self ? self->id.start : 0, read_boot_id(host));
}

JobsFolder JobsFolder::of(const Host& host, const wire::JobsPlace& place) {
  Path project = host.expand(place.project);
  Path jobs = project / place.jobs_folder;
  return {std::move(project), std::move(jobs)};
}

std::optional<JobRecord> read_record(const Host& host, const JobsFolder& folder, const std::string& id) {
  JobRecord job{.id = id, .folder = folder.jobs / id};
  if (!wire::is_id(id) || !is_folder(job.folder) || !may_enter(job.folder)) {
    return std::nullopt;
  }
  job.backend = parse_backend(job.folder / "backend");
  if (const auto words = read_job_words(job.folder / "supervisor"); !words.empty()) {
    job.is_claimed = words[0] == "claimed";
    if (!job.is_claimed) {
      job.supervisor = parse_supervisor(words);
    }
  }
  std::vector<std::string> main = read_job_words(job.folder / "pid");
  if (main.empty()) {
    main = read_job_words(job.folder / "job.pid");  // written by labml_remote
  }
  job.main = parse_recorded_process(main);
  job.recorded = read_history(host, job.folder, id);
  job.end = job.recorded.end;
  if (!job.supervisor && !job.is_claimed && !main.empty() && job.backend == "local" &&
      !exists(job.folder / spec_name)) {
    job.backend = "labml";
  }
  return job;
}

bool claim(const Host& /*host*/, const JobsFolder& folder, const std::string& id) {
  if (!wire::is_id(id)) {
    return false;
  }
  make_job_folder(folder.jobs / id);
  if (!create_file(folder.jobs / id / "supervisor", "claimed\n")) {
    return false;
  }
  put_never_started(folder, id);
  return true;
}

bool put_result(const Host& host, const JobRecord& job, const wire::JobEnd& end) {
  wire::JobEnd complete = end;
  if (!complete.at) {
    complete.at = read_wall_clock();
  }
  return read_history(host, job.folder, job.id).has_ended() ||
         append_safely(host, job.folder, job.id, wire::JobFoundEnded{complete});
}

bool put_never_started(const JobsFolder& folder, const std::string& id) {
  const Path job = folder.jobs / id;
  return read_own_history(job).has_ended() || append_to_journal(job, wire::JobNeverStarts{read_wall_clock()});
}

std::string find_obstacle(const JobsFolder& folder, const std::string& id) {
  if (!is_folder(folder.project)) {
    return "cannot see the folder of the project, " + folder.project.string();
  }
  for (const Path& path : {folder.project, folder.jobs, folder.jobs / id}) {
    if (is_folder(path) && !may_enter(path)) {
      return "no permission to read " + path.string();
    }
  }
  return "";
}

bool put_file(const Path& path, std::string_view text) {
  return replace_file(write_beside(path, text), path);
}

bool put_synced_file(const Path& path, std::string_view text) {
  Path temporary = write_beside(path, text);
  const int fd = temporary.empty() ? -1 : ::open(temporary.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const bool is_synced = fd >= 0 && ::fsync(fd) == 0;
  if (fd >= 0) {
    ::close(fd);
  }
  if (!is_synced && !temporary.empty()) {
    ::unlink(temporary.c_str());
    return false;
  }
  return replace_file(temporary, path);
}

bool create_file(const Path& path, std::string_view text) {
  bool is_created = false;
  return write_new_file(path, text, is_created);
}

}  // namespace remote::agent
