#include "servers/shared.hpp"

#include <algorithm>
#include <utility>

#include "base/files.hpp"
#include "base/hashing.hpp"
#include "base/strings.hpp"
#include "config/project_files.hpp"

namespace remote::servers {
namespace {

constexpr const char* record_file = ".remote/sent/.shared";

}  // namespace

SharedFolders::SharedFolders() : token_(random_hex(16)) {}

SharedFolders::Part::Part(SharedFolders& folders, std::string server)
    : folders_(folders), server_(std::move(server)) {
  const std::lock_guard lock(folders_.mutex_);
  folders_.entries_[server_];
}

SharedFolders::Part::~Part() {
  const std::lock_guard lock(folders_.mutex_);
  folders_.entries_[server_].ended = true;
}

bool SharedFolders::Part::waits_for(const std::string& first) {
  const std::lock_guard lock(folders_.mutex_);
  const auto other = folders_.entries_.find(first);
  Entry& own = folders_.entries_[server_];
  // Whatever the servers answer, they must not wait in a circle, or for a server that has not started.
  if (first == server_ || other == folders_.entries_.end() || other->second.waits || own.waited_for) {
    return false;
  }
  own.waits = other->second.waited_for = true;
  first_ = first;
  return true;
}

std::optional<SharedWork> SharedFolders::Part::look() {
  const std::lock_guard lock(folders_.mutex_);
  Entry& other = folders_.entries_[first_];
  if (!other.ended) {
    return std::nullopt;
  }
  if (other.work) {
    return other.work;
  }
  if (!other.lost) {
    throw Error("not prepared", "it has one folder with " + first_ + ", which failed");
  }
  if (other.successor.empty()) {
    other.successor = server_;
    folders_.entries_[server_].waits = false;
    folders_.entries_[server_].waited_for = true;
    first_.clear();
  } else {
    first_ = other.successor;
  }
  return std::nullopt;
}

void SharedFolders::Part::done(SharedWork work) {
  const std::lock_guard lock(folders_.mutex_);
  folders_.entries_[server_].work = std::move(work);
}

void SharedFolders::Part::failed(bool lost) {
  const std::lock_guard lock(folders_.mutex_);
  folders_.entries_[server_].lost = lost;
}

std::vector<std::vector<std::string>> SharedRecord::read() const {
  std::vector<std::vector<std::string>> groups;
  try {
    for (const std::string& line :
         split(config::read_project_text(config_, record_file).value_or(""), '\n')) {
      std::vector<std::string> names = split(line, ' ');
      if (names.size() > 1 && std::ranges::all_of(names, config::valid_server_name)) {
        groups.push_back(std::move(names));
      }
    }
  } catch (const Error&) {
    return {};  // it is only an aid, and will be recreated
  }
  return groups;
}

std::vector<std::string> SharedRecord::others(const std::string& server) const {
  for (std::vector<std::string>& group : read()) {
    if (std::erase(group, server) > 0) {
      return std::move(group);
    }
  }
  return {};
}

void SharedRecord::update(const std::vector<std::string>& asked,
                          const std::vector<std::vector<std::string>>& groups) const {
  const std::filesystem::path file = config_.local(record_file);
  make_folders(file.parent_path());
  const FileLock lock(file.parent_path() / ".lock");
  const std::vector<std::vector<std::string>> before = read();
  std::vector<std::vector<std::string>> after = groups;
  const auto was_asked = [&](const std::string& name) {
    return std::ranges::find(asked, name) != asked.end();
  };
  for (std::vector<std::string> old : before) {
    const auto joined = std::ranges::find_if(after, [&](const std::vector<std::string>& group) {
      return std::ranges::find_first_of(old, group) != old.end();
    });
    // Keep old knowledge that the new answers do not replace: about servers that were not asked, or a group
    // of which only one server was asked.
    if (joined != after.end() || std::ranges::count_if(old, was_asked) > 1) {
      std::erase_if(old, was_asked);
    }
    if (joined != after.end()) {
      joined->insert(joined->end(), old.begin(), old.end());
    } else {
      after.push_back(std::move(old));
    }
  }
  std::erase_if(after, [](const auto& group) { return group.size() < 2; });
  for (std::vector<std::string>& group : after) {
    std::ranges::sort(group);
  }
  std::ranges::sort(after);
  if (after == before) {
    return;
  }
  std::string text;
  for (const std::vector<std::string>& group : after) {
    text += join(group, " ") + "\n";
  }
  write_file_atomic(file, text);
}

}  // namespace remote::servers
