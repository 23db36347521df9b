// Light or dark: as the system is, or as somebody chose. No module, so that it runs before anything is drawn.

(() => {
  const stored = () => {
    try {
      return localStorage.getItem("theme") ?? "";
    } catch {
      return "";
    }
  };
  const apply = (theme) => {
    document.documentElement.dataset.theme = theme;
    for (const scheme of ["light", "dark"])
      document.getElementById(`theme-color-${scheme}`).media = theme
        ? { true: "all", false: "not all" }[theme === scheme]
        : `(prefers-color-scheme: ${scheme})`;
  };
  apply(stored());
  document.addEventListener("DOMContentLoaded", () => {
    const choice = document.getElementById("theme");
    choice.value = stored();
    choice.addEventListener("change", () => {
      apply(choice.value);
      try {
        localStorage.setItem("theme", choice.value);
      } catch {
        // It holds until the page is left.
      }
    });
  });
})();
