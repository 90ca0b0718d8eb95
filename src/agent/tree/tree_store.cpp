#include "agent/tree/tree_store.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <stdexcept>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "agent/host/files.hpp"
#include "agent/host/remove.hpp"
#include "agent/job/job_files.hpp"
#include "agent/job/journal.hpp"
#include "agent/tree/files.hpp"
#include "agent/tree/land_files.hpp"
#include "base/strings.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

constexpr std::size_t longest_list = std::size_t{1} << 30U;
constexpr std::chrono::seconds start_limit{600};  // a later start is impossible
constexpr int lock_attempts = 50;
constexpr useconds_t lock_interval_us = 100'000;

Path resolve_path(const Path& path) {
  const std::string real = find_real_path(path);
  return real.empty() ? path : Path(real);
}

bool has_ended_mark(const std::string& user) {
  return user.ends_with(".done");
}

}  // namespace

TreeStore::TreeStore(const Host& host, const JobsFolder& folder)
    : host_(host),
      project_(resolve_path(folder.project)),
      jobs_(resolve_path(folder.jobs)),
      folder_(jobs_ / ".trees"),
      machine_(read_host_name(host)),
      boot_(read_boot_id(host)) {}

std::string TreeStore::read_list(const std::string& digest) const {
  return read_file(path(digest, ".list"), longest_list).value_or("");
}

bool TreeStore::lock(const Host& host, bool is_patient) {
  lock_ = Descriptor(
      ::open((folder_ / "lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock_) {
    return false;
  }
  for (int i = 0; is_patient || i < lock_attempts; ++i) {
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) {
      return true;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return true;  // a network file system without locks
    }
    if (host.is_cancelled()) {
      return false;
    }
    ::usleep(lock_interval_us);
  }
  return false;
}

std::vector<std::string> TreeStore::list_trees() const {
  std::vector<std::string> names = list_all_names(folder_);
  std::erase_if(names, [](const std::string& name) { return !wire::is_digest(name); });
  return names;
}

std::vector<std::string> TreeStore::list_users(const std::string& digest) const {
  const Path users = path(digest, ".jobs");
  return is_folder(users) ? list_all_names(users) : std::vector<std::string>();
}

bool TreeStore::is_young(const Path& path) const {
  const auto info = look_at_entry(path);
  return info &&
         std::chrono::abs(read_wall_clock() - std::chrono::seconds(info->st_mtim.tv_sec)) < start_limit;
}

bool TreeStore::lives(const std::string& digest, const std::string& job) const {
  const Path folder = jobs_ / job;
  if (!is_folder(folder) || read_own_history(folder).has_ended()) {
    return false;
  }
  const std::vector<std::string> words = read_job_words(folder / "supervisor");
  if (words.size() < 3) {
    return words.empty() && is_young(folder);  // otherwise it was claimed and will never start
  }
  if (trim(read_job_line(path(digest, ".jobs") / job).value_or("")) != machine_) {
    return true;  // processes on another machine, or in another container, are not visible
  }
  const auto supervisor = parse_process_id(words);
  return words[2] == boot_ && supervisor && is_alive(host_, *supervisor);
}

bool TreeStore::is_in_use(const std::string& digest) const {
  return std::ranges::any_of(list_users(digest), [&](const std::string& user) {
    return !has_ended_mark(user) && lives(digest, user);
  });
}

// A tree is needed as long as the folder of any of its jobs exists.
bool TreeStore::is_needed(const std::string& digest) const {
  return is_young(path(digest, ".starting")) ||
         std::ranges::any_of(list_users(digest), [&](const std::string& user) {
           return is_folder(jobs_ / user.substr(0, user.find('.')));
         });
}

std::string TreeStore::land(const std::string& digest, bool is_starting) const {
  const Path tree = path(digest);
  try {
    const std::string text = read_list(digest);
    if (text.empty()) {
      return "the list of its files is lost; check " + tree.string();
    }
    const TreeList list = parse_tree_list(text);
    if (!is_folder(tree) || is_in_use(digest) || (!is_starting && is_young(path(digest, ".starting")))) {
      return "";
    }
    std::string reason = land_files(*this, digest, list);
    if (reason.empty()) {
      remove_file(path(digest, ".open"));
    }
    return reason;
  } catch (const std::exception& error) {
    return error.what();
  }
}

void TreeStore::land_all(const std::string& except) const {
  for (const std::string& digest : list_trees()) {
    if (digest != except && exists(path(digest, ".open"))) {
      land(digest);
    }
  }
}

void TreeStore::drop_all(const std::string& except) const {
  drop_new();
  for (const std::string& digest : list_trees()) {
    if (digest == except || is_needed(digest) || is_in_use(digest) || !land(digest).empty()) {
      continue;
    }
    if (::rename(path(digest).c_str(), new_path(digest).c_str()) != 0) {
      fail_at(path(digest));
    }
    for (const char* suffix : {".list", ".open", ".starting"}) {
      remove_file(path(digest, suffix));
    }
    remove_folder(folder_, digest + ".jobs", "");
  }
  drop_new();
}

void TreeStore::drop_new() const {
  for (const std::string& name : list_all_names(folder_)) {
    if (name.starts_with(".new.")) {
      remove_folder(folder_, name, "");
    }
  }
}

}  // namespace remote::agent
