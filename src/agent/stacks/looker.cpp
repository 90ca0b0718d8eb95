#include "agent/stacks/looker.hpp"

#include <algorithm>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "agent/job/job_files.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

constexpr std::chrono::milliseconds looker_pause{100};

Path find_wish(const Path& folder) {
  return folder / "looker.next";
}

// The living process that this file identifies, unless it is this process.
std::optional<ProcessId> find_other(const Host& host, const Path& file) {
  const auto process = parse_process_id(read_job_words(file));
  return process && process->pid != ::getpid() && is_alive(host, *process) ? process : std::nullopt;
}

}  // namespace

Looker::Looker(const Host& host, const JobsFolder& folder, const std::vector<std::string>& ids, bool asks)
    : host_(host) {
  for (const std::string& id : ids) {
    folders_.push_back(folder.jobs / id);
  }
  acquire(std::chrono::seconds(20), asks);
}

void Looker::acquire(std::chrono::seconds limit, bool asks) {
  const auto self = read_process(host_, ::getpid());
  if (!self) {
    return;
  }
  const std::string line = text::format("{} {}\n", self->id.pid, self->id.start);
  const auto end = read_boot_clock() + limit;
  for (const Path& folder : folders_) {
    const Path file = folder / "looker";
    const Path wish = find_wish(folder);
    bool has_asked = false;
    int unreadable = 0;
    while (is_folder(folder)) {
      if (create_file(file, line)) {
        files_.push_back(file);
        break;
      }
      const auto other = parse_process_id(read_job_words(file));
      // Unreadable for a moment while another process writes or removes it.
      const bool is_odd = !other && ++unreadable > 3;
      if (is_odd || (other && *other == self->id) || read_boot_clock() >= end || host_.is_cancelled()) {
        break;
      }
      if (other && !is_alive(host_, *other)) {
        ::unlink(file.c_str());
        continue;
      }
      const auto asking = parse_process_id(read_job_words(wish));
      if (other && asks && (!asking || !is_alive(host_, *asking))) {
        has_asked = write_job_file(wish, line, O_TRUNC | O_NONBLOCK) || has_asked;
      }
      std::this_thread::sleep_for(looker_pause);
    }
    if (has_asked && !find_other(host_, wish)) {
      ::unlink(wish.c_str());
    }
  }
}

void Looker::release() {
  for (const Path& file : files_) {
    ::unlink(file.c_str());
  }
  files_.clear();
}

bool Looker::is_asked() const {
  return std::ranges::any_of(
      folders_, [&](const Path& folder) { return find_other(host_, find_wish(folder)).has_value(); });
}

void Looker::let_other_look() {
  release();
  for (int tries = 0; tries < 20 && is_asked() && !host_.is_cancelled(); ++tries) {
    std::this_thread::sleep_for(looker_pause);
  }
  acquire(std::chrono::seconds(75), false);
}

}  // namespace remote::agent
