#include "agent/job/journal.hpp"

#include <array>
#include <cerrno>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/descriptor.hpp"
#include "agent/host/files.hpp"
#include "agent/job/job_spec.hpp"
#include "agent/job/json_lines.hpp"
#include "agent/job/second_place.hpp"

namespace remote::agent {
namespace {

// Exists only if the file system cannot allocate space beyond the end of a file.
constexpr std::string_view space_name = ".space";
constexpr std::size_t reserved_bytes = 4096;

std::string read_own_lines(const Path& job_folder) {
  return read_job_file(job_folder / journal_name, largest_journal).value_or("");
}

}  // namespace

rules::JobHistory read_history(const Host& host, const Path& job_folder, const std::string& id) {
  std::string lines = read_own_lines(job_folder);
  if (const std::string second = read_second_journal(host, id); !second.empty()) {
    lines += "\n" + second;
  }
  return rules::fold(parse_json_lines<wire::JobEntry>(lines));
}

rules::JobHistory read_own_history(const Path& job_folder) {
  return rules::fold(parse_json_lines<wire::JobEntry>(read_own_lines(job_folder)));
}

bool append_to_journal(const Path& job_folder, const wire::JobEntry& entry) {
  return append_json_line(job_folder / journal_name, entry) ||
         (::unlink((job_folder / space_name).c_str()) == 0 &&
          append_json_line(job_folder / journal_name, entry));
}

bool append_safely(const Host& host, const Path& job_folder, const std::string& id,
                   const wire::JobEntry& entry) {
  return append_to_journal(job_folder, entry) ||
         (exists(job_folder / spec_name) &&
          append_to_second_journal(host, id, wire::to_json_text(entry) + "\n"));
}

KeptJournalTime::KeptJournalTime(const Path& job_folder) : journal_(job_folder / journal_name) {
  struct stat info {};
  if (::lstat(journal_.c_str(), &info) == 0 && read_own_history(job_folder).has_ended()) {
    time_ = info.st_mtim;
  }
}

KeptJournalTime::~KeptJournalTime() {
  if (time_) {
    const std::array times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, *time_};
    ::utimensat(AT_FDCWD, journal_.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
  }
}

void reserve_journal(const Path& job_folder) {
  const Descriptor file(::open((job_folder / journal_name).c_str(),
                               O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat info {};
  if (file && ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
      ::fallocate(file.get(), FALLOC_FL_KEEP_SIZE, info.st_size, reserved_bytes) != 0 &&
      errno == EOPNOTSUPP) {
    write_job_file(job_folder / space_name, std::string(reserved_bytes, ' '), O_TRUNC);
  }
}

void release_journal(const Path& job_folder) {
  ::unlink((job_folder / space_name).c_str());
}

bool restore_journal(const Host& host, const Path& job_folder, const std::string& id) {
  const std::string lines = read_second_journal(host, id);
  const KeptJournalTime time(job_folder);
  return !lines.empty() && append_lines(job_folder / journal_name, lines);
}

}  // namespace remote::agent
