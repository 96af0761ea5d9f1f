// The changes that a view marks on the slider: `{time, event}`.

import { signal } from './base.js';

export const marks = signal([]);
