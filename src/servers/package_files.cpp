#include "servers/package_files.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "base/beneath.hpp"
#include "base/build_products.hpp"
#include "base/command.hpp"
#include "base/has_any.hpp"
#include "base/hashing.hpp"
#include "base/ownership.hpp"
#include "base/package_name.hpp"
#include "base/paths.hpp"
#include "base/strings.hpp"
#include "config/trust.hpp"
#include "servers/project_tree.hpp"

namespace remote::servers {
namespace fs = std::filesystem;
namespace {

using PlaceKind = RequirementPlace::Kind;

// Joins lines that end with a backslash, and removes comments.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const std::string& raw : split(text, '\n')) {
    std::string line = raw.ends_with('\r') ? raw.substr(0, raw.size() - 1) : raw;
    const bool continues = line.ends_with('\\') && !trim(line).starts_with('#');
    if (continues) {
      line.pop_back();
    }
    lines.back() += line;
    if (!continues) {
      lines.emplace_back();
    }
  }
  for (std::string& line : lines) {
    for (std::size_t at = line.find('#'); at != std::string::npos; at = line.find('#', at + 1)) {
      if (at == 0 || std::isspace(static_cast<unsigned char>(line[at - 1])) != 0) {
        line.resize(at);
        break;
      }
    }
    line = trim(line);
  }
  return lines;
}

// The archives that pip installs.
bool is_archive(const std::string& name) {
  constexpr const char* ends[] = {".whl", ".zip",    ".tar", ".tar.gz",   ".tgz", ".tar.bz2",
                                  ".tbz", ".tar.xz", ".txz", ".tar.lzma", ".tlz", ".tar.lz"};
  const std::string lower = lower_case(name);
  return std::ranges::any_of(ends, [&](const char* end) { return lower.ends_with(end); });
}

// The path in "./libs/p[extra] ; marker", "p @ file:///libs/p" or "libs/p#egg=p"; "" if there is none.
std::string local_path(std::string text) {
  text = trim(text.substr(0, std::min(text.find(" ;"), text.find(';'))));
  if (const std::size_t at = text.find('@');
      at != std::string::npos && at > 0 && text.find_first_of("/\\") > at && text.find("://") != at) {
    text = trim(std::string_view(text).substr(at + 1));
  }
  if (text.size() > 1 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  text = text.substr(0, text.find('#'));
  constexpr std::string_view with_host = "file://";
  if (text.starts_with(with_host)) {
    const std::size_t path = text.find('/', with_host.size());
    const std::string host = text.substr(with_host.size(), path - with_host.size());
    text = path != std::string::npos && (host.empty() || host == "localhost") ? text.substr(path) : "";
  } else if (text.starts_with("file:")) {
    text = text.substr(5);
  }
  if (text.ends_with(']')) {
    text = text.substr(0, text.rfind('['));
  }
  text = trim(text);
  return text.find("://") == std::string::npos && !text.starts_with("//") &&
                 text.find("${") == std::string::npos
             ? text
             : "";
}

void add_place(std::vector<RequirementPlace>& places, PlaceKind kind, const std::string& text) {
  if (const std::string path = local_path(text); !path.empty()) {
    places.push_back({kind, path});
  }
}

void read_options(const std::string& line, std::vector<RequirementPlace>& places) {
  struct Option {
    std::string_view brief;
    std::string_view full;
    PlaceKind kind;
  };
  constexpr Option options[] = {{"-r", "--requirement", PlaceKind::requirements},
                                {"-c", "--constraint", PlaceKind::requirements},
                                {"-f", "--find-links", PlaceKind::links},
                                {"-e", "--editable", PlaceKind::editable}};
  const std::vector<std::string> words = shell_words(line);
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const Option& option : options) {
      const std::string& word = words[i];
      if (word == option.brief || word == option.full) {
        add_place(places, option.kind, i + 1 < words.size() ? words[++i] : "");
      } else if (word.starts_with(std::string(option.full) + '=')) {
        add_place(places, option.kind, word.substr(option.full.size() + 1));
      } else if (word.starts_with(option.brief) && !word.starts_with("--")) {
        add_place(places, option.kind, word.substr(word[2] == '=' ? 3 : 2));
      } else {
        continue;
      }
      break;
    }
  }
}

// The quoted values after a key: path = "../other".
std::vector<std::string> quoted_values(std::string_view line, std::string_view key) {
  std::vector<std::string> values;
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t sign = line.find_first_not_of(" \t\"'", at + key.size());
    const bool is_key = at == 0 || (std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0 &&
                                    line[at - 1] != '_' && line[at - 1] != '-');
    if (!is_key || sign == std::string_view::npos || (line[sign] != '=' && line[sign] != ':')) {
      continue;
    }
    const std::size_t begin = line.find_first_not_of(" \t", sign + 1);
    if (begin == std::string_view::npos || (line[begin] != '"' && line[begin] != '\'')) {
      continue;
    }
    const std::size_t end = line.find(line[begin], begin + 1);
    if (end != std::string_view::npos) {
      values.emplace_back(line.substr(begin + 1, end - begin - 1));
    }
  }
  return values;
}

// Words that could be names of requirements files: "requirements/base.txt", "dev.in".
std::set<std::string> named_texts(std::string_view text) {
  std::set<std::string> names;
  std::string word;
  for (const char c : std::string(text) + '\n') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 ||
        std::string_view("_./-").find(c) != std::string_view::npos) {
      word += c;
      continue;
    }
    if (word.ends_with(".txt") || word.ends_with(".in")) {
      names.insert(word);
    }
    word.clear();
  }
  return names;
}

// Names of requirements files that a Python program joins: "reqs/base.txt" in os.path.join(here, "reqs",
// "base.txt") and in here / "reqs" / "base.txt".
std::set<std::string> joined_texts(std::string_view text) {
  std::set<std::string> names;
  constexpr std::size_t most_parts = 8;
  std::vector<std::string> parts;
  const auto is_quote = [&](std::size_t at) {
    return at < text.size() && (text[at] == '"' || text[at] == '\'');
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end =
        is_quote(at) ? text.find_first_of(std::string{text[at], '\n'}, at + 1) : text.npos;
    if (end < text.size() && text[end] != '\n') {
      std::string name(text.substr(at + 1, end - at - 1));
      at = end;
      parts.push_back(name);
      parts.erase(parts.begin(),
                  parts.end() - static_cast<std::ptrdiff_t>(std::min(parts.size(), most_parts)));
      for (std::size_t i = parts.size() - 1; i-- > 0 && (name.ends_with(".txt") || name.ends_with(".in"));) {
        names.insert(name = parts[i] + "/" + name);
      }
    } else if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (std::string_view(" \t\r\n,/+)").find(text[at]) == std::string_view::npos &&
               !is_quote(at + 1)) {
      parts.clear();
    }
  }
  return names;
}

// The files that describe the dependencies of a package.
constexpr const char* descriptions[] = {"pyproject.toml", "setup.cfg", "setup.py"};

class PackageReader {
 public:
  explicit PackageReader(const config::Config& config) : config_(config), project_(config.project) {}

  // Returns the text; "" if the file does not exist or was added already.
  std::string add_file(const std::string& name) {
    add_server_place(name);
    const auto path = own_path(name);
    const auto content = path && seen_.insert(*path).second ? read_beneath(project_, *path) : std::nullopt;
    if (!content) {
      return "";
    }
    lines_.insert("sha256 " + sha256_hex(*content) + " " + path->string());
    return decode_text(*content, project_ / *path);
  }
  // Adds a file and all files that it names. Paths of packages are relative to the project, because pip
  // resolves them relative to the folder where it runs.
  void add_requirements(const std::string& name) {
    const fs::path beside = fs::path(name).parent_path();
    for (const RequirementPlace& place : requirement_places(add_file(name))) {
      switch (place.kind) {
        case PlaceKind::requirements:
          add_requirements((beside / place.path).string());
          break;
        case PlaceKind::links:
          add_archives(is_own_folder(beside / place.path) ? (beside / place.path).string() : place.path);
          break;
        case PlaceKind::package:
        case PlaceKind::editable:
          add_package(place.path, place.kind == PlaceKind::editable);
          break;
      }
    }
  }
  void add_archives(const std::string& folder) {
    add_server_place(folder);
    if (!is_own_folder(folder)) {
      return;
    }
    for (const fs::path& entry : entries_of(project_ / folder)) {
      const fs::path name = (fs::path(folder) / entry.filename()).lexically_normal();
      if (is_archive(name.string())) {
        add_content(name.string());
      }
    }
  }
  // Adds a folder with a package, or an archive.
  void add_package(const std::string& place, bool editable) {
    const auto path = own_path(place);
    if (!path) {
      if (!editable) {
        add_server_place(place);
        return;
      }
      for (const char* file : descriptions) {  // its code is used in place
        add_server_place((fs::path(place) / file).string());
      }
      return;
    }
    if (!is_own_folder(*path)) {
      if (is_archive(path->string())) {
        add_content(path->string());
      }
      return;
    }
    if (!packages_.emplace(*path, editable).second) {
      return;
    }
    add_description(*path);
    if (editable) {
      return;  // its code is used in place
    }
    const std::string prefix = *path == "." ? "" : (*path / "").string();
    for (const std::string& name : sent()) {
      if (name.starts_with(prefix) && !name.ends_with('/') && !is_build_product(name.substr(prefix.size()))) {
        add_content(name);
      }
    }
  }
  // Adds the files that pip reads to find the dependencies of a package in this folder.
  void add_description(const fs::path& folder) {
    for (const char* file : descriptions) {
      const std::string text = add_file((folder / file).string());
      std::set<std::string> names = named_texts(text);
      if (file == std::string_view("setup.py")) {
        names.merge(joined_texts(text));
        names.merge(find_texts(folder, named_texts(text)));
      }
      for (const std::string& name : names) {
        try {
          add_requirements((folder / name).string());
        } catch (const Error&) {  // the word is not the name of such a file
        }
      }
      add_paths(folder, text);
    }
  }
  // Adds the packages that a Pipfile or pyproject.toml in this folder refers to by path.
  void add_paths(const fs::path& folder, const std::string& text) {
    for (const std::string& line : split(text, '\n')) {
      const std::string plain = replace_all(line, " ", "");
      const bool editable =
          plain.find("editable=true") != std::string::npos || plain.find("develop=true") != std::string::npos;
      for (const char* key : {"path", "file"}) {
        for (const std::string& value : quoted_values(line, key)) {
          if (const std::string place = local_path(value); !place.empty()) {
            add_package((folder / place).string(), editable);
          }
        }
      }
    }
  }
  // Adds a file or folder outside the project, which only the server can read.
  void add_server_place(const std::string& place) {
    if (!place.empty() && !own_path(place)) {
      server_places_.insert(place);
    }
  }
  PackageFiles take_all() { return {.lines = std::move(lines_), .server_places = std::move(server_places_)}; }

 private:
  // nullopt: not in the project.
  static std::optional<fs::path> own_path(const fs::path& name) {
    fs::path path = name.lexically_normal();
    if (!path.has_filename() && path.has_parent_path()) {
      path = path.parent_path();  // "libs/"
    }
    const bool outside =
        path.empty() || path.is_absolute() || *path.begin() == ".." || path.string().starts_with('~');
    return outside ? std::nullopt : std::optional(path);
  }
  // The files of a package that its setup.py could mean by these words: "base.txt" in any folder if there is
  // none beside it, and, if the program puts the name together, all that end in ".txt" and look like
  // requirements, unlike labels or logs. Relative to `folder`.
  std::set<std::string> find_texts(const fs::path& folder, const std::set<std::string>& words) {
    std::set<std::string> found;
    const auto own = own_path(folder / "setup.py");
    for (const std::string& word : words) {
      const bool is_end = word.starts_with('.') && word.find('/') == word.npos;
      if (!own || (!is_end && (word.find('/') != word.npos || is_there(project_ / folder / word)))) {
        continue;
      }
      const std::string prefix = own->has_parent_path() ? (own->parent_path() / "").string() : "";
      for (const std::string& name : sent()) {
        const std::string inner = name.starts_with(prefix) ? name.substr(prefix.size()) : "";
        const bool fits =
            is_end ? inner.ends_with(word) && has_any(inner, {"require", "reqs", "deps", "constraint"})
                   : inner.ends_with("/" + word);
        if (fits && !is_build_product(inner)) {
          found.insert(inner);
        }
      }
    }
    return found;
  }
  bool is_own_folder(const fs::path& folder) const {
    return own_path(folder) && is_folder(project_ / folder) &&
           config::lies_in(resolved(project_ / folder), resolved(project_));
  }
  void add_content(const std::string& name) {
    if (!seen_.insert(name).second) {
      return;
    }
    std::optional<std::string> content;
    try {
      content = read_beneath(project_, name);
    } catch (const Error&) {  // it is too large, or pip could not read it
      add_size_and_end(name);
    }
    if (content) {
      lines_.insert("sha256 " + sha256_hex(*content) + " " + name);
    }
  }
  // For large files. The end of an archive has checksums of all that is in it, so another build with the same
  // size has another end.
  void add_size_and_end(const std::string& name) {
    try {
      const UniqueFd file = open_beneath(project_, name);
      struct stat info {};
      if (!file || ::fstat(file.get(), &info) != 0) {
        return;
      }
      constexpr off_t most_bytes = off_t{1} << 20U;
      std::string end(static_cast<std::size_t>(std::min(info.st_size, most_bytes)), '\0');
      const ssize_t count =
          ::pread(file.get(), end.data(), end.size(), std::max(off_t{0}, info.st_size - most_bytes));
      end.resize(static_cast<std::size_t>(std::max(count, ssize_t{0})));
      lines_.insert("size " + std::to_string(info.st_size) + " " + name);
      lines_.insert("end " + sha256_hex(end) + " " + name);
    } catch (const Error&) {  // pip could not read it
    }
  }
  // The files that are sent to the servers. Only these can be compared there.
  const std::set<std::string>& sent() {
    if (!sent_) {
      const std::vector<std::string> names = selected_names(config_, project_, Cancel());
      sent_.emplace(names.begin(), names.end());
    }
    return *sent_;
  }

  const config::Config& config_;
  const fs::path& project_;
  std::set<fs::path> seen_;
  std::set<std::pair<fs::path, bool>> packages_;
  std::optional<std::set<std::string>> sent_;
  std::set<std::string> lines_;
  std::set<std::string> server_places_;
};

bool is_remote_place(const std::string& place) {
  return place.find("://") != std::string::npos;
}

}  // namespace

std::vector<RequirementPlace> requirement_places(std::string_view text) {
  std::vector<RequirementPlace> places;
  for (const std::string& line : logical_lines(text)) {
    if (line.starts_with('-')) {
      read_options(line, places);
      continue;
    }
    const std::string requirement = line.substr(0, line.find(" -"));  // pip's options follow
    const std::string path = local_path(requirement);
    if (path.find('/') != std::string::npos || path.starts_with('.') || is_archive(path)) {
      add_place(places, PlaceKind::package, requirement);
    }
  }
  return places;
}

bool requires_module(std::string_view text, std::string_view module) {
  constexpr std::string_view characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const std::vector<std::string> lines = logical_lines(text);
  return !module.empty() && std::ranges::any_of(lines, [&](const std::string& line) {
    return normalize_package(line.substr(0, line.find_first_not_of(characters))) == normalize_package(module);
  });
}

PackageFiles package_files(const config::Config& config, PackageSource source) {
  PackageReader files(config);
  switch (source) {
    case PackageSource::pipenv:
      files.add_paths("", files.add_file("Pipfile"));
      files.add_file("Pipfile.lock");
      break;
    case PackageSource::requirements:
      files.add_requirements("requirements.txt");
      break;
    case PackageSource::pyproject:
      files.add_description("");
      break;
    case PackageSource::none:
      return {};
  }
  for (const std::string& place : config.python.find_links) {
    if (!is_remote_place(place)) {
      files.add_archives(place);
    }
  }
  for (const std::string& file : config.python.constraints) {
    if (!is_remote_place(file)) {
      files.add_requirements(file);
    }
  }
  return files.take_all();
}

}  // namespace remote::servers
