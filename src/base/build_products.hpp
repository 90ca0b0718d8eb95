#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "base/strings.hpp"

namespace remote {

// Whether a name, relative to the folder of a Python package, is a product of building the package.
inline bool is_build_product(std::string_view name) {
  constexpr std::string_view folders[] = {"build", "dist", "__pycache__", ".git", ".venv", "venv"};
  return name.ends_with(".pyc") || std::ranges::any_of(split(name, '/'), [&](const std::string& part) {
           return part.ends_with(".egg-info") || std::ranges::find(folders, part) != std::end(folders);
         });
}

}  // namespace remote
