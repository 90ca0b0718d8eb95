#include "agent/sweep/sweep_files.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"
#include "wire/read_json.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t largest_sweep_file = std::size_t{128} << 20U;  // JSON is larger than CBOR

template <typename Value>
std::optional<Value> read_file_of(const Path& path) {
  return wire::try_read_json<Value>(read_job_file(path, largest_sweep_file).value_or(""));
}

std::string to_diary_line(const wire::SweepEntry& entry) {
  if (const auto* given = std::get_if<wire::PointGiven>(&entry)) {
    return "give " + given->point + " " + wire::percent_encode(given->server);
  }
  if (const auto* returned = std::get_if<wire::PointReturned>(&entry)) {
    return "back " + returned->point;
  }
  if (const auto* begun = std::get_if<wire::PointBegun>(&entry)) {
    return "begin " + begun->point;
  }
  return "failed " + std::get<wire::PointNotStarted>(entry).point;
}

}  // namespace

void SweepFolder::make() const {
  const Path sweeps = path_.parent_path();
  ::mkdir(sweeps.c_str(), 0700);
  const auto info = look_at_entry(sweeps);
  if (!info) {
    throw std::runtime_error("cannot write in " + sweeps.parent_path().string() +
                             ": no permission, or the disk is full");
  }
  if (!S_ISDIR(info->st_mode)) {
    throw std::runtime_error(sweeps.string() +
                             " is not a folder, and points are started by its files: remove it");
  }
  if (info->st_uid != ::geteuid()) {
    throw std::runtime_error(sweeps.string() +
                             " belongs to another user, who could change what runs from it; remove it, or "
                             "use another folder");
  }
  if ((info->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    ::chmod(sweeps.c_str(), info->st_mode & ~(S_IWGRP | S_IWOTH));
  }
  if (::mkdir(path_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw std::runtime_error("cannot make the folder " + path_.string() + ": " + std::strerror(errno));
  }
}

std::optional<wire::SweepPoints> SweepFolder::read_points() const {
  return read_file_of<wire::SweepPoints>(file("points"));
}

std::optional<wire::SweepRun> SweepFolder::read_run() const {
  auto run = read_file_of<wire::SweepRun>(file("run"));
  return run && !run->servers.empty() ? std::move(run) : std::nullopt;
}

bool SweepFolder::write(const wire::SweepPoints& points) const {
  return put_synced_file(file("points"), wire::to_json_bytes(points) + "\n");
}

bool SweepFolder::write(const wire::SweepRun& run) const {
  return put_synced_file(file("run"), wire::to_json_text(run) + "\n");
}

std::optional<ProcessId> SweepFolder::find_supervisor(const Host& host) const {
  const auto record = read_process_record(file("runner"));
  const bool is_here = record && record->is_of_this_boot(host);
  return is_here && is_alive(host, record->process) ? std::optional(record->process) : std::nullopt;
}

wire::SweepRunner SweepFolder::find_state(const Host& host) const {
  if (!is_folder(path_)) {
    return wire::SweepRunner::none;
  }
  if (find_supervisor(host)) {
    return wire::SweepRunner::alive;
  }
  if (is_stopped()) {
    return wire::SweepRunner::stopped;
  }
  return exists(file("runner")) ? wire::SweepRunner::dead : wire::SweepRunner::done;
}

SweepDiary::Content SweepDiary::read() const {
  Content content;
  const std::string text = read_job_file(path_, largest_sweep_file).value_or("");
  std::string_view rest = text;
  for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    const std::vector<std::string> words = split_words(rest.substr(0, end));
    rest.remove_prefix(end + 1);
    if (words.size() < 2 || !wire::is_id(words[1])) {
      continue;  // an incomplete line, from a supervisor that was killed
    }
    if (words[0] == "give" && words.size() == 3) {
      content.given[words[1]] = wire::percent_decode(words[2]).value_or(words[2]);
    } else if (words[0] == "back") {
      content.given.erase(words[1]);
    } else if (words[0] == "begin") {
      content.begun.insert(words[1]);
    } else if (words[0] == "failed") {
      content.begun.erase(words[1]);
    }
  }
  return content;
}

void SweepDiary::open() {
  file_ = Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat info {};
  // The last line may be incomplete.
  if (!file_ || ::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      (info.st_size > 0 && !write_whole(file_.get(), "\n"))) {
    throw std::runtime_error("cannot write " + path_.string() + ": no permission, or the disk is full");
  }
}

bool SweepDiary::write(const wire::SweepEntry& entry) {
  // A failed write may have left an incomplete line; an empty line does no harm.
  const std::string line = (was_cut_ ? "\n" : "") + to_diary_line(entry) + "\n";
  was_cut_ = !write_whole(file_.get(), line);
  return !was_cut_ && ::fsync(file_.get()) == 0;
}

}  // namespace remote::agent
