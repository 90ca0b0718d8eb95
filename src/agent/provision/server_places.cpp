#include "agent/provision/server_places.hpp"

#include <cstddef>

#include <sys/stat.h>

#include "agent/host/path.hpp"
#include "agent/job/hash_file.hpp"
#include "base/build_products.hpp"
#include "base/format.hpp"

namespace remote::agent {
namespace {

// A folder with more entries than this is not read completely.
constexpr std::size_t most_entries = 20'000;

class PlaceReader {
 public:
  // If a place itself is a link, it is followed. Links inside it are not, so that no walk is circular.
  void add(const Path& place) {
    const auto info = look_at(place);
    text_ += place.string() + '\n';
    if (info) {
      add_entry(place, "", *info);
    }
  }
  const std::string& text() const { return text_; }

 private:
  void add_entry(const Path& path, const std::string& name, const struct stat& info) {
    if (entries_ == most_entries || is_build_product(name)) {
      return;
    }
    ++entries_;
    if (!S_ISDIR(info.st_mode)) {
      text_ += text::format("{} {} {} {}\n", name, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
      return;
    }
    for (const std::string& entry : list_names(path)) {
      const Path inner = path / entry;
      if (const auto found = look_at_entry(inner)) {
        add_entry(inner, name.empty() ? entry : name + "/" + entry, *found);
      }
    }
  }

  std::string text_;
  std::size_t entries_ = 0;
};

}  // namespace

std::string digest_with_places(const Host& host, const std::string& digest,
                               const std::vector<std::string>& places) {
  if (places.empty()) {
    return digest;
  }
  PlaceReader reader;
  for (const std::string& place : places) {
    reader.add(host.expand(place));
  }
  return hash_text(digest + '\n' + reader.text());
}

}  // namespace remote::agent
