#include "project/past_code.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fcntl.h>
#include <remote/error.hpp>
#include <sys/stat.h>

#include "base/beneath.hpp"
#include "base/build_products.hpp"
#include "base/ownership.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "project/server_setup.hpp"
#include "wire/text.hpp"

namespace remote::project {
namespace fs = std::filesystem;
namespace {

constexpr std::chrono::seconds patience{120};
constexpr std::size_t most_patch = 256U << 20U;

std::string line_of(const std::optional<std::string>& printed) {
  const std::string text = printed.value_or("");
  return text.substr(0, text.find('\n'));
}

bool is_hex(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Whether the servers had different code than this machine.
bool was_not_sent(const PastLaunch& record) {
  return std::ranges::any_of(record.beginning.servers, [](const ServerSetup& server) {
    return std::ranges::any_of(server.facts, [](const auto& fact) {
      return fact.first == "changed here" || fact.first == "changed there";
    });
  });
}

// The value of this fact if it is a digest and the same on all servers; otherwise "".
std::string digest_of(const PastLaunch& record, std::string_view name) {
  std::set<std::string> digests;
  for (const ServerSetup& server : record.beginning.servers) {
    digests.insert(find_fact(server, name));
  }
  return digests.size() == 1 && wire::is_digest(*digests.begin()) ? *digests.begin() : "";
}

// Checks a path in a tree, which is untrusted.
bool is_within(const fs::path& folder, const fs::path& file) {
  return config::lies_in(resolved(file.parent_path()), resolved(folder));
}

// Whether a program may use this file: not those that tools and editors write, such as ".DS_Store" and
// "runs/train.log".
bool may_be_code(const std::string& name) {
  const bool is_hidden = ("/" + name).find("/.") != std::string::npos;
  return !is_hidden && !name.ends_with(".log") && !is_build_product(name);
}

// Copies a folder with its contents, except git repositories.
void copy_files(const fs::path& from, const fs::path& to, const Cancel& cancel) {
  std::error_code error;
  fs::create_directories(to, error);
  for (fs::directory_iterator at(from, error), end; !error && at != end; at.increment(error)) {
    cancel.check();
    if (at->path().filename() == ".git") {
      continue;
    }
    if (is_folder(at->path()) && !is_link(at->path())) {
      copy_files(at->path(), to / at->path().filename(), cancel);
      continue;
    }
    fs::copy(at->path(), to / at->path().filename(), fs::copy_options::copy_symlinks, error);
    struct stat info {};
    if (!error && ::lstat(at->path().c_str(), &info) == 0) {
      const timespec times[] = {{info.st_mtime, 0}, {info.st_mtime, 0}};
      ::utimensat(AT_FDCWD, (to / at->path().filename()).c_str(), times, AT_SYMLINK_NOFOLLOW);
    }
  }
  if (error) {
    throw Error("cannot copy the submodule " + from.string(), error.message(),
                "can you read it, and does the temporary folder have enough space?");
  }
}

// Sets a time that is older than any edited file, and depends on the content.
void set_time(const fs::path& file, const std::string& blob) {
  const timespec time{.tv_sec = 86400 + std::stol(blob.substr(0, 7), nullptr, 16), .tv_nsec = 0};
  const timespec times[] = {time, time};
  ::utimensat(AT_FDCWD, file.c_str(), times, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

std::string read_patch(const PastLaunch& record) {
  const fs::path records = record.patch.parent_path().parent_path();
  return record.patch.empty() ? "" : read_beneath(records, record.patch, most_patch).value_or("");
}

std::string tree_digest(const PastLaunch& record) {
  return digest_of(record, "tree");
}

std::string sent_digest(const PastLaunch& record) {
  // A frozen launch may have run other code than that in the project's folder on its servers.
  const std::string tree = tree_digest(record);
  return tree.empty() ? digest_of(record, "code") : tree;
}

std::optional<servers::ProjectState> files_sent(const config::Config& config, const PastLaunch& record) {
  const std::string text = servers::sent_text(config, sent_digest(record));
  return text.empty() ? std::nullopt : servers::ProjectState::parse(text);
}

PastCode::PastCode(const fs::path& project, Cancel cancel)
    : project_(project), cancel_(cancel), git_(project, cancel, patience) {
  try {
    const std::string objects = line_of(git_.ask({"rev-parse", "--git-path", "objects"}));
    const auto prefix = git_.ask({"rev-parse", "--show-prefix"});
    known_ = !objects.empty() && prefix && git_.without_drivers() &&
             objects.find_first_of(":\"") == std::string::npos;  // special in the list of paths below
    prefix_ = line_of(prefix);
    make_folders(work_.path() / "objects");
    git_.set("GIT_INDEX_FILE", (work_.path() / "index").string());
    git_.set("GIT_OBJECT_DIRECTORY", (work_.path() / "objects").string());
    git_.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", (project / objects).string());
  } catch (const Error&) {  // git is not installed
    known_ = false;
  }
}

PastCode::Tree PastCode::tree_of(const PastLaunch& record, const fs::path& patch) {
  Tree tree{.kept = CodeKept::no_git, .untracked = record.untracked};
  if (!known_ || record.commit.empty()) {
    return tree;
  }
  tree.kept = CodeKept::no_commit;
  if (!is_hex(record.commit) || !git_.ask({"read-tree", record.commit})) {
    cancel_.check();
    return tree;
  }
  // Records of older versions do not show whether the patch is missing or there was none.
  if (!record.changed_in.empty() ||
      (patch.empty() && (record.changed || (!record.clean && !record.request)))) {
    tree.kept = CodeKept::no_patch;
    return tree;
  }
  if (!patch.empty()) {
    std::vector<std::string> words{"apply", "--cached", "--whitespace=nowarn"};
    if (!prefix_.empty()) {
      words.push_back("--directory=" + prefix_);
    }
    words.push_back(patch.string());
    if (!git_.ask(words)) {
      tree.kept = CodeKept::no_patch;
      return tree;
    }
  }
  for (const std::string& line : listed_submodules(git_)) {
    tree.submodules.insert(line);
  }
  tree.id = line_of(git_.ask({"write-tree", "--missing-ok"}));
  tree.kept = tree.id.empty() ? CodeKept::no_commit : CodeKept::kept;
  return tree;
}

PastCode::Tree PastCode::then(const PastLaunch& record) {
  const fs::path patch = record.patch.empty() ? fs::path() : work_.path() / "then.patch";
  if (!patch.empty()) {
    write_file_atomic(patch, read_patch(record));
  }
  Tree tree = tree_of(record, patch);
  if (tree.kept == CodeKept::kept && was_not_sent(record)) {
    tree.kept = CodeKept::not_sent;
  }
  return tree;
}

PastCode::Tree PastCode::now() {
  Git here(project_, cancel_, patience);  // uses the user's index
  auto [record, text] = known_ ? look_at_git(here, most_patch) : std::pair<PastLaunch, std::string>();
  record.request.emplace();  // for tree_of(): a missing patch means no changes
  const fs::path patch = work_.path() / "now.patch";
  if (!text.empty()) {
    write_file_atomic(patch, text);
  }
  Tree tree = tree_of(record, text.empty() ? fs::path() : patch);
  std::erase_if(tree.submodules,
                [this](const std::string& line) { return !has_folder(project_, name_of_submodule(line)); });
  return tree;
}

std::vector<std::string> PastCode::changed(const Tree& from, const Tree& to) {
  std::vector<std::string> names;
  if (from.kept == CodeKept::kept && to.kept == CodeKept::kept) {
    names = split(git_.ask(of_project({"diff", "--name-only", "-z", "--no-renames", "--relative",
                                       "--no-ext-diff", "--no-textconv", from.id, to.id}))
                      .value_or(""),
                  '\0');
    std::erase(names, "");
  }
  return names;
}

std::string PastCode::diff(const Tree& from, const Tree& to) {
  if (from.kept != CodeKept::kept || to.kept != CodeKept::kept) {
    return "";
  }
  return git_
      .ask(of_project({"diff", "--relative", "--no-color", "--no-ext-diff", "--no-textconv", "-U3",
                       "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", from.id, to.id}))
      .value_or("");
}

std::vector<std::string> PastCode::changed_without_git(const Tree& from, const Tree& to,
                                                       const servers::ProjectState& then,
                                                       const servers::ProjectState& now) {
  std::vector<std::string> names = now.differing_from(then);
  std::erase_if(names,
                [&](const std::string& name) { return then.find(name) == nullptr || !may_be_code(name); });
  if (names.empty()) {
    return names;
  }
  auto known = list_tracked(Git(project_, cancel_, patience));
  for (const Tree* tree : {&from, &to}) {
    if (known && !tree->id.empty()) {
      const auto listed = git_.ask({"ls-tree", "-r", "-z", "--name-only", tree->id}, Git::most_files);
      if (!listed) {
        return {};
      }
      for (std::string& name : split(*listed, '\0')) {
        known->insert(std::move(name));
      }
    }
  }
  std::erase_if(names, [&](const std::string& name) { return !known || known->contains(name); });
  return names;
}

fs::path PastCode::write(const Tree& tree) {
  const fs::path all = work_.path() / "tree";
  const fs::path folder = all / prefix_;
  make_folders(folder);
  const auto failed = [&](bool well) {
    cancel_.check();
    if (!well) {
      throw Error("cannot restore the code of the launch", "git failed",
                  "start it with the current code, or check out its commit");
    }
  };
  failed(git_.ask({"read-tree", tree.id}).has_value());
  failed(git_.ask({"rm", "--cached", "-r", "-f", "-q", "--ignore-unmatch", "--", ".remote"}).has_value());
  failed(git_.ask({"checkout-index", "-a", "-f", "-q", "--prefix=" + all.string() + "/"}).has_value());
  for (const std::string& line : split(git_.ask({"ls-files", "-s", "-z"}).value_or(""), '\0')) {
    // "100644 <blob> 0\t<name>"
    const std::size_t tab = line.find('\t');
    const fs::path file = tab != std::string::npos ? folder / line.substr(tab + 1) : fs::path();
    if (tab != std::string::npos && tab > 47 && is_hex(line.substr(7, 7)) && is_within(folder, file)) {
      set_time(file, line.substr(7, 40));
    }
  }
  for (const std::string& line : tree.submodules) {
    const std::string name = name_of_submodule(line);
    if (!has_folder(project_, name) || !is_within(folder, folder / name)) {
      throw Error("cannot restore the code of the launch",
                  "the submodule " + visible_line(name) + " is a link or missing here",
                  "check it out again: git submodule update");
    }
    copy_files(project_ / name, folder / name, cancel_);
  }
  // Uses the attributes in these files.
  Git written = git_.with_files(resolved(all), folder);
  failed(written.without_drivers());
  written.set("GIT_INDEX_FILE", (work_.path() / "index").string());
  for (const std::string& filter : git_.filters()) {
    if (filter.find_first_of(",)\\") != std::string::npos) {
      continue;  // an attribute cannot have such a value
    }
    const auto names = written.ask({"ls-files", "-z", "--", ":(attr:filter=" + filter + ")"});
    failed(names.has_value());
    for (const std::string& name : split(*names, '\0')) {
      if (!name.empty() && is_within(folder, folder / name)) {
        remove_file(folder / name);
      }
    }
  }
  return folder;
}

}  // namespace remote::project
